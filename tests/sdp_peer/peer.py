"""A peer of SDP, written from docs/spec/sdp.md alone: messages are bytes, and nothing is shared with weft's own core.

It has what the spec asks of a peer that copies and does Read ZCopy in both roles: headers, credits, Combined mode, cancels, and the end."""

import struct
from collections import deque

HEADER = struct.Struct(">BBHIII")  # spec 2
SIZE = HEADER.size
DIS_CONN, ABORT_CONN, SEND_SM, RDMA_RD_COMPL, MODE_CHANGE, SRC_AVAIL_CANCEL = 0x02, 0x03, 0x04, 0x06, 0x07, 0x08
CH_RCV_BUF, CH_RCV_BUF_ACK, SUSP_COMM, SUSP_COMM_ACK, SRC_AVAIL, DATA = 0x0B, 0x0C, 0x0D, 0x0E, 0xFE, 0xFF
READ_AGAIN = 64  # spec 6, 2: payloads below that are read once more


class Broken(Exception):
    """The other side did what the spec forbids."""


def check(right, what):
    if not right:
        raise Broken(what)


class Peer:
    """Events go in by its methods, messages come out in `out`. `memory` is what it advertised, by tagged offset."""

    def __init__(self, bufs, peer_bufs, receive_size):
        self.bufs, self.posted, self.size = bufs, bufs, receive_size
        self.limit = peer_bufs  # spec 4: number up to which it may send
        self.told = bufs
        self.mseq = self.taken = 0
        self.out = deque()
        self.waiting = deque()  # controls without a credit
        self.received = b""
        self.advert = None  # its own: [length, read, cancelled]
        self.held = None  # the peer's: [length, to, started, in flight, cancelled]
        self.frozen = None  # spec 6, 4: what MSeqAck stands still at
        self.reads = deque()
        self.outcomes = []
        self.end_sent = self.end_got = self.aborted = False
        self.in_use = 0  # of its receives: messages that were not read

    # Spec 4.

    def acknowledged(self):
        return self.taken if self.frozen is None else self.frozen

    def credits(self):
        return self.limit - self.mseq

    def raises(self):
        return self.acknowledged() + self.posted > self.told

    def message(self, mid, rest=b"", flags=0):
        self.mseq += 1
        self.told = max(self.told, self.acknowledged() + self.posted)
        self.out.append(HEADER.pack(mid, flags, self.posted, SIZE + len(rest), self.mseq, self.acknowledged()) + rest)

    def control(self, mid, rest=b""):
        self.waiting.append((mid, rest))

    def go_on(self):
        """What waits goes, as far as credits allow; then news of receives."""
        while self.waiting and (self.credits() >= 2 or self.credits() == 1 and self.raises()):
            self.message(*self.waiting.popleft())
        news = self.raises() and (self.told - self.taken < 3 or self.acknowledged() + self.posted - self.told >= max(self.bufs // 4, 2))
        if news and not self.waiting and (self.credits() >= 2 or self.credits() == 1):
            self.message(DATA)

    def may_send(self):
        return self.credits() >= 3 and self.advert is None and not self.end_sent

    # What its user does.

    def send(self, payload):
        check(len(payload) <= self.size - SIZE, "own payload")
        self.message(DATA, payload)

    def advertise(self, length, first, to):
        self.advert = [length, 0, False]
        self.message(SRC_AVAIL, struct.pack(">IIQ", length, 9, to) + first)

    def may_advertise(self):
        return self.may_send() and self.held is None

    def cancel(self):
        if self.advert and not self.advert[2]:
            self.advert[2] = True
            self.control(SRC_AVAIL_CANCEL)

    def start_read(self, most):
        """Where to read from and how much, or None."""
        if self.held is None or self.held[4] or self.held[2] == self.held[0]:
            return None
        n = min(most, self.held[0] - self.held[2])
        piece = (self.held[1] + self.held[2], n)
        self.held[2] += n
        self.held[3] += n
        self.reads.append(n)
        return piece

    def finish_read(self, data):
        n = self.reads.popleft()
        check(len(data) == n, "read of another size")
        self.received += data
        self.held[3] -= n
        self.control(RDMA_RD_COMPL, struct.pack(">I", n))
        if self.held[3] == 0:
            self.frozen = None
            if self.held[2] == self.held[0]:
                self.held = None
            elif self.held[4]:
                self.held = None
                self.control(SEND_SM)

    def refuse(self):
        if self.held and self.held[3] == 0:
            self.held = None
            self.control(SEND_SM)

    def read_all(self):
        self.posted += self.in_use
        self.in_use = 0

    def end(self):
        if not self.end_sent and self.advert is None:
            self.end_sent = True
            self.control(DIS_CONN)

    # What comes.

    def take(self, message):
        check(len(message) >= SIZE, "shorter than a header")
        check(self.posted > 0, "a message came without a receive: credits")
        mid, flags, bufs, length, mseq, ack = HEADER.unpack(message[:SIZE])
        check(length == len(message) <= self.size, f"Len {length} of {len(message)} bytes")
        check(flags & ~7 == 0, "reserved flags")
        check(mseq == self.taken + 1, f"MSeq {mseq} behind {self.taken}")
        check(ack <= self.mseq, "MSeqAck of what was not sent")
        self.taken += 1
        self.posted -= 1
        self.limit = max(self.limit, ack + bufs)
        rest = message[SIZE:]
        if mid == DATA:
            return self.on_data(rest)
        self.posted += 1
        handler = {SRC_AVAIL: self.on_src_avail, RDMA_RD_COMPL: self.on_rd_compl, SEND_SM: self.on_send_sm,
                   SRC_AVAIL_CANCEL: self.on_cancel, DIS_CONN: self.on_end, ABORT_CONN: self.on_abort,
                   CH_RCV_BUF_ACK: self.on_nothing, SUSP_COMM_ACK: self.on_nothing}.get(mid)
        check(handler, f"message {mid:#x}")
        return handler(rest)

    def on_nothing(self, rest):
        pass

    def on_data(self, payload):
        if not payload:
            self.posted += 1
            return
        check(not self.end_got, "data behind the end")
        check(self.held is None, "data beside a SrcAvail")
        self.in_use += 1
        self.received += payload

    def on_src_avail(self, rest):
        check(len(rest) >= 17, "SrcAvail of Combined mode carries a byte")
        check(self.held is None and not self.end_got, "a second SrcAvail")
        length, _, to = struct.unpack(">IIQ", rest[:16])
        payload = rest[16:]
        check(len(payload) < length, "all of the buffer as payload")
        counted = len(payload) if len(payload) >= READ_AGAIN else 0
        self.received += payload[:counted]
        self.held = [length, to, counted, 0, False]
        self.cancel()  # spec 6, 5

    def on_rd_compl(self, rest):
        n, = struct.unpack(">I", rest)
        check(self.advert is not None, "RdmaRdCompl of nothing")
        self.advert[1] += n
        check(self.advert[1] <= self.advert[0], "more read than advertised")
        if self.advert[1] == self.advert[0]:
            self.settle()

    def on_send_sm(self, rest):
        check(not rest and self.advert is not None, "SendSm of nothing")
        self.settle()

    def settle(self):
        self.outcomes.append(self.advert[1])
        self.advert = None
        self.waiting = deque(w for w in self.waiting if w[0] != SRC_AVAIL_CANCEL)

    def on_cancel(self, rest):
        check(not rest, "SrcAvailCancel with more")
        if self.held is None:
            return
        if self.held[3] == 0:
            self.held = None
            self.control(SEND_SM)
        else:
            self.held[4] = True
            self.frozen = self.taken - 1

    def on_end(self, rest):
        check(not rest and not self.end_got, "a second DisConn")
        self.end_got = True

    def on_abort(self, rest):
        self.aborted = True
