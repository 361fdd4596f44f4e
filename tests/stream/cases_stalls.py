"""Cases in which the receiver does not run: alone, while Writes land that nobody looks at, or again and again with all of its process."""

import contextlib
import ctypes
import os
import signal
import socket
import struct
import time

from cases_data import payload, table
from lofar import samples
from scene import PACKET, SECONDS, Skipped, check, equal, total

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # of ptrace(2)
BLOCK, BLOCKS = 32, 20  # samples are the same 512 packets later
TURN = BLOCK * BLOCKS
SHAPE = ("--block", BLOCK, "--blocks", BLOCKS)
PACE = ("--rate", 300, "--first", 3200)


def trace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(request, thread, None, None) != 0:
        raise Skipped(f"needs ptrace(2): {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def without_its_thread(process):
    """The first thread of the process is stopped, and no other."""
    thread = process.process.pid
    trace(SEIZE, thread)
    trace(INTERRUPT, thread)
    os.waitpid(thread, 0)
    try:
        yield
    finally:
        trace(DETACH, thread)


def sent(document):
    return total(document, "sent") if "streams" in document else 0


def go_on(sender, turns):
    """Until the sender has gone round the ring so often from now on."""
    before = max(map(sent, sender.documents()), default=0)
    begin = sent(sender.wait_for("a report", lambda d: sent(d) > before))
    sender.wait_for("more turns", lambda d: sent(d) > begin + turns * TURN)


def stop(sender):
    """How much it has sent. It waits for a second then, and a receiver that has much to catch up with may need more to answer."""
    sender.kill(signal.SIGINT)
    status = sender.process.wait(SECONDS)
    check(status in (0, 1), f"status {status} of the sender")
    return sent(sender.end(status))


class Block(ctypes.Structure):
    """As struct weft_stream_block, as far as it is looked at."""
    _fields_ = [("magic", ctypes.c_uint64), ("number", ctypes.c_uint64), ("stream", ctypes.c_uint32), ("packets", ctypes.c_uint32),
                ("received", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("packet_bytes", ctypes.c_uint32), ("slot_bytes", ctypes.c_uint32),
                ("block_bytes", ctypes.c_uint64), ("closed_ns", ctypes.c_int64), ("valid", ctypes.c_uint8 * 2048)]


class Consumer:
    """This process, of stream 0."""

    def __init__(self, scene):
        self.library = ctypes.CDLL(f"{scene.build}/bin/libstream_ring.so")
        for name in ("ring_open", "stream_attach", "stream_front", "stream_data"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.ring = ctypes.c_void_p(self.library.ring_open(scene.ring.encode()))
        check(self.ring, "no ring")
        self.stream = ctypes.c_void_p(self.library.stream_attach(self.ring, 0))
        check(self.stream, "the consumer does not attach")
        self.samples = table()

    def front(self):
        """Waits for a block; its header and where its packets are, or None when no more will come."""
        for _ in range(SECONDS):
            found = self.library.stream_wait(self.stream, 1000)
            if found < 0:
                return None
            if found > 0:
                block = ctypes.c_void_p(self.library.stream_front(self.stream))
                return Block.from_address(block.value), self.library.stream_data(self.stream, block)
        raise AssertionError("no block comes")

    def look(self, block, data):
        """Each packet has the samples that its number has; how many there are."""
        here = [i for i in range(block.packets) if block.valid[i // 8] >> i % 8 & 1]
        for i in here:
            number = block.number * block.packets + i
            found = ctypes.string_at(data + i * block.slot_bytes + 16, PACKET - 16)
            check(found == payload(self.samples, 0, number, PACKET - 16), f"samples of packet {number}")
        return len(here)

    def release(self):
        self.library.stream_release(self.stream)

    def close(self):
        self.library.stream_detach(self.stream)
        self.library.ring_close(self.ring)


def account(receiver, all_sent):
    got = receiver.end()["streams"][0]
    equal(got["received"] + got["overrun"] + got["missing"], all_sent, f"accounted for: {got}")
    check(got["overrun"] + got["missing"] > TURN, f"the receiver was not kept from running: {got}")
    return got["received"]


def block_in_hand(send=()):
    """A consumer reads a block while the sender goes round the ring: the block stays what it is."""
    def case(scene):
        receiver = scene.receive("uc", "--ring", scene.ring, *SHAPE, "--once")
        consumer = Consumer(scene)
        sender = scene.send("uc", *PACE, *send)
        packets = 0
        for _ in range(2 * BLOCKS):
            packets += consumer.look(*consumer.front())
            consumer.release()
        in_hand = consumer.front()
        with without_its_thread(receiver):
            go_on(sender, 4)
            packets += consumer.look(*in_hand)
        consumer.release()
        all_sent = stop(sender)
        while block := consumer.front():
            packets += consumer.look(*block)
            consumer.release()
        consumer.close()
        equal(packets, account(receiver, all_sent), "packets that the consumer took")
    return case


def slow_consumer(scene):
    """Of a ring that is full of blocks which nobody has read yet each one is read as it was published."""
    receiver = scene.receive("uc", "--ring", scene.ring, *SHAPE, "--once")
    consumer = scene.consume("--slow", 100)
    sender = scene.send("uc", *PACE)
    receiver.wait_for("an overrun", lambda d: "streams" in d and total(d, "overrun") > 0)
    with without_its_thread(receiver):
        go_on(sender, 4)
    all_sent = stop(sender)
    seen = consumer.end()
    equal((seen["wrong"], seen["packets"]), (0, account(receiver, all_sent)), f"wrong, packets, of {seen}")


def silent_between_stalls(scene):
    """A receiver that never runs for long, as on a very busy machine, sees that its sender is silent all the same."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as at:
        at.bind(("127.0.0.1", 0))
        port = at.getsockname()[1]
    receiver = scene.receive("udp", "--format", "raw", "--payload", 900, "--streams", 1, "--block", 16, "--once", "--udp-port", port,
                             "--idle", 1000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for i in range(40):
            sender.sendto(struct.pack("<Q", 40 + i) + samples(i, 900), ("127.0.0.1", port))
    until = time.monotonic() + SECONDS
    while receiver.process.poll() is None and time.monotonic() < until:
        for number, seconds in ((signal.SIGSTOP, 0.3), (signal.SIGCONT, 0.05)):
            receiver.kill(number)
            time.sleep(seconds)
    equal(total(receiver.end(within=0), "received"), 40, "received")


CASES = {"silent_between_stalls": silent_between_stalls, "stalled": block_in_hand(), "stalled_groups": block_in_hand(("--packets-per-write", 4)), "stalled_slow": slow_consumer}
