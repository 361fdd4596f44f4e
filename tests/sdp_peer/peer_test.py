#!/usr/bin/env python3
"""weft's core of SDP (core_pipe) against a peer that was written from the specification alone (peer.py).

  peer_test.py PROGRAM [TEST...]
"""

import random
import struct
import subprocess
import sys
import unittest
from collections import deque

import peer as sdp
from peer import HEADER, Peer

PROGRAM = None
BUFS, SIZE = 6, 200


class Core:
    """The program, a command a line."""

    def __init__(self):
        self.process = subprocess.Popen([PROGRAM, str(BUFS), str(BUFS), str(SIZE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.out = []
        self.ended = self.aborted = False
        self.received = b""
        self.outcomes = []
        self.landed = deque()  # what RDMA Writes have brought: bytes
        self.written = []
        self.violation = None
        self.unread = 0

    def run(self, command):
        """What it answers besides, as words."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answers = []
        for line in self.process.stdout:
            words = line.split()
            if words == ["."]:
                return answers
            if words[0] == "out":
                self.out.append(bytes.fromhex(words[1]))
            elif words[0] == "data":
                self.received += bytes.fromhex(words[1])
                self.unread += 1
            elif words[0] == "violation":
                self.violation = line[len("violation "):].strip()
            elif words[0] == "outcome":
                self.outcomes.append(int(words[1]))
            elif words[0] == "written":
                self.written.append(int(words[1]))
                if self.written[-1]:
                    self.received += self.landed.popleft()
            elif words[0] == "ended":
                self.ended = True
            elif words[0] == "aborted":
                self.aborted = True
            else:
                answers.append(words)
        raise AssertionError(f"{command}: it ended")

    def take(self, message):
        before = self.unread
        answers = self.run("message " + message.hex())
        if self.unread == before:
            self.run("posted")
        return answers

    def read_all(self):
        for _ in range(self.unread):
            self.run("posted")
        self.unread = 0

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def byte(side, i):
    return (i * 131 + (i >> 8) * 17 + side * 91) & 0xFF


def stream(side, start, count):
    return bytes(byte(side, i) for i in range(start, start + count))


class PeerTest(unittest.TestCase):
    def setUp(self):
        self.core, self.peer = Core(), Peer(BUFS, BUFS, SIZE)

    def tearDown(self):
        self.core.close()

    def to_peer(self):
        while self.core.out:
            self.peer.take(self.core.out.pop(0))
        self.peer.go_on()

    def to_core(self):
        self.peer.go_on()
        while self.peer.out:
            self.core.take(self.peer.out.popleft())
            self.assertIsNone(self.core.violation)

    def header(self):
        """Of the oldest message that the core has sent."""
        return HEADER.unpack(self.core.out[0][:sdp.SIZE])

    def test_data_both_ways(self):
        self.core.run("data " + b"hello".hex())
        self.to_peer()
        self.assertEqual(self.peer.received, b"hello")
        self.peer.send(b"answer")
        self.to_core()
        self.assertEqual(self.core.received, b"answer")

    def test_credits_stop_data_and_news_lets_it_go_on(self):
        sent = 0
        while self.core.run("data 01") != [["no"]]:
            sent += 1
        self.assertEqual(sent, BUFS - 3)
        self.to_peer()
        self.peer.read_all()
        self.to_core()
        self.assertEqual(self.core.run("data 01"), [])

    def test_the_core_reads_what_is_advertised(self):
        data = stream(1, 0, 1000)
        self.peer.advertise(len(data), data[:1], 4096)
        self.to_core()
        got = b""
        while (answer := self.core.run("read 300")) != [["no"]]:
            (_, to, length), = answer
            got += data[int(to) - 4096:][:int(length)]
            self.core.run("finish")
        self.to_peer()
        self.assertEqual((got, self.peer.outcomes), (data, [1000]))

    def test_the_core_advertises(self):
        self.core.run("advertise 500 17 900")
        self.to_peer()
        self.assertEqual(self.peer.start_read(200), (900, 200))
        self.peer.finish_read(bytes(200))
        self.assertEqual(self.peer.start_read(900), (1100, 300))
        self.peer.finish_read(bytes(300))
        self.to_core()
        self.assertEqual(self.core.outcomes, [500])

    def test_two_sources_that_cross_both_take_back(self):
        self.core.run("advertise 500 1 0")
        self.peer.advertise(400, b"x", 0)
        crossing = self.core.out.pop(0)
        self.to_core()
        self.peer.take(crossing)
        for _ in range(4):
            self.to_peer()
            self.to_core()
        self.assertEqual((self.core.outcomes, self.peer.outcomes), ([0], [0]))

    def test_a_cancel_that_meets_a_read_is_answered_behind_it(self):
        self.peer.advertise(500, b"x", 0)
        self.to_core()
        self.core.run("read 100")
        self.peer.cancel()
        self.to_core()
        self.core.run("data 01")
        self.assertEqual(self.header()[5], 1, "the cancel is not acknowledged while the Read goes on")
        self.core.run("finish")
        self.to_peer()
        self.assertEqual(self.peer.outcomes, [100])

    def settle(self):
        for _ in range(6):
            self.to_peer()
            self.to_core()
            self.core.read_all()
            self.peer.read_all()

    def core_writes(self, most, start=0):
        """The core writes, and what it writes lands."""
        (what, to, length), = self.core.run(f"write {most}")
        self.assertEqual(what, "write")
        self.peer.landed.append((int(to), stream(0, start, int(length))))

    def peer_writes(self, most, start=0):
        to, length = self.peer.write(most)
        self.core.landed.append(stream(1, start, length))
        return to

    def test_the_core_writes_to_what_the_peer_offers(self):
        self.core.run("mode pipelined")
        self.to_peer()
        self.peer.offer(1000, 4096)
        self.to_core()
        self.core_writes(600)
        self.to_peer()
        self.assertEqual((self.peer.received, self.peer.written), (stream(0, 0, 600), [(4096, 600)]))

    def test_the_peer_writes_to_what_the_core_offers(self):
        self.core.run("ask")
        self.settle()
        self.assertEqual(self.peer.sending_mode, sdp.PIPELINED, "REQ_PIPE")
        self.core.run("offer 1000 4096")
        self.to_peer()
        self.assertEqual(self.peer_writes(5000), 4096)
        self.to_core()
        self.assertEqual((self.core.received, self.core.written), (stream(1, 0, 1000), [1000]))

    def test_an_offer_of_the_peer_that_crosses_data(self):
        self.core.run("mode pipelined")
        self.to_peer()
        self.core.run("data " + stream(0, 0, 9).hex())
        self.peer.offer(1000, 1)
        self.to_core()
        self.assertEqual(self.core.run("write 10"), [["no"]])
        self.to_peer()
        self.peer.offer(1000, 2)
        self.to_core()
        self.core_writes(20, 9)
        self.to_peer()
        self.assertEqual((self.peer.received, self.peer.written), (stream(0, 0, 29), [(1, 0), (2, 20)]))

    def test_an_offer_of_the_core_that_crosses_data(self):
        self.core.run("ask")
        self.settle()
        self.peer.send(stream(1, 0, 9))
        self.core.run("offer 1000 1")
        self.to_peer()
        self.assertFalse(self.peer.may_write())
        self.to_core()
        self.assertEqual(self.core.run("offer 1000 2"), [])
        self.to_peer()
        self.peer_writes(20, 9)
        self.to_core()
        self.assertEqual((self.core.received, self.core.written), (stream(1, 0, 29), [0, 20]))

    def test_an_offer_takes_back_what_is_advertised(self):
        for mine, other in (("core", "peer"), ("peer", "core")):
            with self.subTest(advertises=mine):
                self.core.close()
                self.setUp()
                if mine == "core":
                    self.core.run("mode pipelined")
                    self.to_peer()
                    self.core.run("advertise 500 1 0")
                    self.peer.offer(1000, 7)
                else:
                    self.core.run("ask")
                    self.settle()
                    self.peer.advertise(500, b"x", 0)
                    self.core.run("offer 1000 7")
                self.settle()
                self.assertEqual((self.core if mine == "core" else self.peer).outcomes, [0])
                if mine == "core":
                    self.core_writes(500)
                else:
                    self.peer_writes(500)
                self.settle()
                self.assertEqual(len((self.peer if other == "peer" else self.core).received), 500)

    def test_offers_are_cancelled(self):
        self.core.run("mode pipelined")
        self.core.run("ask")
        self.settle()
        self.peer.offer(1000, 1)
        self.core.run("offer 1000 2")
        self.peer.cancel_offers()
        self.core.run("cancel_offers")
        self.settle()
        self.assertEqual((self.core.written, self.peer.written), ([0], [(1, 0)]))
        self.assertEqual(self.core.run("write 1"), [["no"]])
        self.assertFalse(self.peer.may_write())

    def test_offers_that_cross_the_change_to_combined(self):
        self.core.run("mode pipelined")
        self.core.run("ask")
        self.settle()
        self.core.run("mode combined")
        self.peer.offer(1000, 1)
        self.peer.change_mode(sdp.COMBINED)
        self.peer.go_on()
        self.core.run("offer 1000 2")
        self.settle()
        self.assertEqual((self.core.written, self.peer.written), ([0], [(1, 0)]))
        self.assertEqual(self.core.run("offer 1000 3"), [["no"]])

    def test_the_end_waits_for_what_is_advertised(self):
        self.core.run("advertise 100 1 0")
        self.core.run("end")
        self.to_peer()
        self.assertFalse(self.peer.end_got)
        self.peer.start_read(100)
        self.peer.finish_read(bytes(100))
        self.to_core()
        self.to_peer()
        self.assertTrue(self.peer.end_got)

    def test_abort(self):
        self.core.run("abort")
        self.to_peer()
        self.assertTrue(self.peer.aborted)
        self.peer.control(sdp.ABORT_CONN)
        self.to_core()
        self.assertTrue(self.core.aborted)

    def test_questions_that_want_an_answer(self):
        self.peer.message(sdp.CH_RCV_BUF, struct.pack(">I", 1 << 20))
        self.to_core()
        self.assertEqual((self.header()[0], self.core.out[0][sdp.SIZE:]), (sdp.CH_RCV_BUF_ACK, struct.pack(">I", SIZE)))
        self.to_peer()
        self.peer.message(sdp.SUSP_COMM, bytes(8))
        self.to_core()
        self.assertIn(sdp.SUSP_COMM_ACK, [message[0] for message in self.core.out])

    def test_what_is_not_allowed(self):
        def header(mid, length=16, mseq=1, ack=0):
            return HEADER.pack(mid, 0, BUFS, length, mseq, ack)

        for message in (header(sdp.DATA, 17), header(0x42), header(sdp.DATA, mseq=2), header(sdp.DATA, ack=1), header(sdp.RDMA_RD_COMPL, 20) + bytes(4),
                        header(sdp.SEND_SM), header(sdp.MODE_CHANGE, 20) + b"\x90\0\0\0", header(sdp.SRC_AVAIL, 32) + bytes(16), b"short",
                        header(sdp.RDMA_WR_COMPL, 20) + bytes(4), header(sdp.SINK_CANCEL_ACK), header(sdp.SINK_AVAIL, 36) + struct.pack(">IIQI", 1000, 1, 0, 0)):
            with self.subTest(message.hex()):
                core = Core()
                core.run("message " + message.hex())
                self.assertIsNotNone(core.violation)
                core.close()

    def test_any_order(self):
        """Streams both ways, by copies, Reads and Writes, with cancels and changes of mode at any time, arrive whole."""
        for seed in range(12):
            with self.subTest(seed):
                self.core.close()
                self.setUp()
                self.any_order(random.Random(seed), 4000)

    def any_order(self, draw, total):  # pylint: disable=too-many-branches
        core, peer = self.core, self.peer
        sent, core_sent, writes, reads = 0, 0, 0, []
        # Bytes of what is advertised become the stream's when they are read.
        for _ in range(60_000):
            if sent == core_sent == len(core.received) == len(peer.received) == total:
                break
            match draw.randrange(17):
                case 0 if sent < total and peer.may_send():
                    n = draw.randint(1, min(SIZE - 16, total - sent))
                    peer.send(stream(1, sent, n))
                    sent += n
                case 1 if core_sent < total:
                    n = draw.randint(1, min(SIZE - 16, total - core_sent))
                    if core.run("data " + stream(0, core_sent, n).hex()) == []:
                        core_sent += n
                case 2 if total - sent > 1 and peer.may_advertise():
                    n = draw.randint(2, min(1500, total - sent))
                    peer.advertise(n, stream(1, sent, 1), sent)
                case 3 if total - core_sent > 1:
                    n = draw.randint(2, min(1500, total - core_sent))
                    core.run(f"advertise {n} {byte(0, core_sent)} {core_sent}")
                case 4:
                    answer = core.run(f"read {draw.randint(1, 700)}") if not reads else [["no"]]
                    if answer != [["no"]]:
                        reads.append(tuple(map(int, answer[0][1:])))
                case 5 if reads:
                    core.received += stream(1, *reads.pop(0))
                    core.run("finish")
                case 6 if not peer.reads:
                    if piece := peer.start_read(draw.randint(1, 700)):
                        self.piece = piece
                case 7 if peer.reads:
                    peer.finish_read(stream(0, *self.piece))
                case 8 if draw.random() < 0.2:
                    draw.choice((lambda: core.run("cancel"), peer.cancel, lambda: core.run("refuse"), peer.refuse))()
                case 9:
                    core.read_all()
                    peer.read_all()
                case 10 if core.out:
                    peer.take(core.out.pop(0))
                    peer.go_on()
                case 11:
                    peer.go_on()
                    if peer.out:
                        core.take(peer.out.popleft())
                        self.assertIsNone(core.violation)
                case 12 if total > core_sent:
                    answer = core.run(f"write {draw.randint(1, min(1500, total - core_sent))}")
                    if answer != [["no"]]:
                        (_, to, length), = answer
                        peer.landed.append((int(to), stream(0, core_sent, int(length))))
                        core_sent += int(length)
                        writes += 1
                case 13 if total > sent and peer.may_write():
                    _, n = peer.write(draw.randint(1, min(1500, total - sent)))
                    core.landed.append(stream(1, sent, n))
                    sent += n
                    writes += 1
                case 14:
                    core.run(f"offer {draw.randint(SIZE, 1500)} {draw.randrange(1 << 40)}")
                case 15 if peer.may_offer():
                    peer.offer(draw.randint(SIZE, 1500), draw.randrange(1 << 40))
                case 16 if draw.random() < 0.3:
                    draw.choice((lambda: core.run("cancel_offers"), peer.cancel_offers, lambda: core.run("mode combined"), lambda: core.run("mode pipelined"),
                                 lambda: core.run("ask"), lambda: peer.change_mode(sdp.PIPELINED), lambda: peer.change_mode(sdp.COMBINED)))()
            core_sent += sum(core.outcomes)
            sent += sum(peer.outcomes)
            core.outcomes.clear()
            peer.outcomes.clear()
        self.assertEqual((core.received, peer.received), (stream(1, 0, total), stream(0, 0, total)))
        self.assertGreater(writes, 0)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
