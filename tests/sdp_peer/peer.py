"""A peer of SDP, written from docs/spec/sdp.md alone: messages are bytes, and nothing is shared with weft's own core.

It has what the spec asks of a peer that copies and does Read and Write ZCopy in both roles: headers, credits, Combined and Pipelined mode, cancels, and the end."""

import struct
from collections import deque

HEADER = struct.Struct(">BBHIII")  # spec 2
SIZE = HEADER.size
DIS_CONN, ABORT_CONN, SEND_SM, RDMA_RD_COMPL, MODE_CHANGE, SRC_AVAIL_CANCEL = 0x02, 0x03, 0x04, 0x06, 0x07, 0x08
RDMA_WR_COMPL, SINK_AVAIL_CANCEL, SINK_CANCEL_ACK, SINK_AVAIL = 0x05, 0x09, 0x0A, 0xFD
COMBINED, PIPELINED, REQ_PIPE = 1, 2, 4
CH_RCV_BUF, CH_RCV_BUF_ACK, SUSP_COMM, SUSP_COMM_ACK, SRC_AVAIL, DATA = 0x0B, 0x0C, 0x0D, 0x0E, 0xFE, 0xFF
READ_AGAIN = 64  # spec 6, 2: payloads below that are read once more


class Broken(Exception):
    """The other side did what the spec forbids."""


def check(right, what):
    if not right:
        raise Broken(what)


class Peer:
    """Events go in by its methods, messages come out in `out`. `memory` is what it advertised, by tagged offset."""

    def __init__(self, bufs, peer_bufs, receive_size, max_adverts=2):
        self.bufs, self.posted, self.size = bufs, bufs, receive_size
        self.limit = peer_bufs  # spec 4: number up to which it may send
        self.told = bufs
        self.mseq = self.taken = self.acked = 0
        self.out = deque()
        self.waiting = deque()  # controls without a credit
        self.received = b""
        self.advert = None  # its own: [length, read, cancelled]
        self.held = None  # the peer's: [length, to, started, in flight, cancelled]
        self.frozen = None  # spec 6, 4: what MSeqAck stands still at
        self.reads = deque()
        self.outcomes = []
        self.max_adverts = max_adverts
        self.sending_mode = self.receiving_mode = COMBINED
        self.wanted_mode = None  # of its sending half
        self.left_pipelined = None  # spec 5: [number of the ModeChange, Data that counted since]
        self.src_avail_number = 0
        self.sinks = deque()  # the peer's buffers that it holds: (length, to)
        self.not_discarding = 0  # spec 7, 2: Data that went out
        self.owed = 0  # RdmaWrCompl and SinkCancelAck that wait
        self.offers = deque()  # its own buffers: (length, to)
        self.non_discards = 0  # spec 7, 2: Data that came in
        self.offers_cancelled = False
        self.landed = deque()  # what RDMA Writes have brought to its own buffers: (to, bytes)
        self.written = []  # of its own buffers: (to, length); 0 where it was discarded or cancelled
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
            mid, *rest = self.waiting.popleft()
            self.owed -= mid in (RDMA_WR_COMPL, SINK_CANCEL_ACK)
            self.message(mid, *rest)
        if self.wanted_mode and not self.waiting and self.credits() >= 2 and self.mode_may_change():
            self.change_mode_now()
        left, more = self.told - self.taken, self.acknowledged() + self.posted - self.told
        news = more > 0 and (left < 2 or more >= (2 if left < 4 else max(self.bufs // 4, 2)))
        if news and not self.waiting and (self.credits() >= 2 or self.credits() == 1):
            self.message(DATA)

    def may_send(self):
        return self.credits() >= 4 and self.advert is None and not self.owed and not self.end_sent

    # What its user does.

    def send(self, payload):
        check(len(payload) <= self.size - SIZE, "own payload")
        if self.sinks:
            self.sinks.popleft()
        else:
            self.not_discarding += 1
            if self.left_pipelined:
                self.left_pipelined[1] += 1
        self.message(DATA, payload)

    def advertise(self, length, first, to):
        self.advert = [length, 0, False]
        self.message(SRC_AVAIL, struct.pack(">IIQ", length, 9, to) + (first if self.sending_mode == COMBINED else b""))
        self.src_avail_number = self.mseq

    def may_advertise(self):
        return self.may_send() and self.held is None and not self.sinks and self.wanted_mode is None

    # Spec 5, as the source.

    def change_mode(self, mode):
        if self.wanted_mode is None and mode != self.sending_mode and not self.end_sent:
            self.wanted_mode = mode

    def mode_may_change(self):
        left = self.left_pipelined is None or self.acked >= self.left_pipelined[0]
        return left and self.advert is None and not self.sinks and not self.end_sent

    def change_mode_now(self):
        self.message(MODE_CHANGE, bytes([self.wanted_mode << 4, 0, 0, 0]))
        self.left_pipelined = [self.mseq, 0] if self.wanted_mode == COMBINED else None
        self.sending_mode, self.wanted_mode = self.wanted_mode, None

    # Spec 7, as the source.

    def may_write(self):
        return bool(self.sinks) and not self.owed and not self.end_sent

    def write(self, most):
        """Where to write to and how much."""
        length, to = self.sinks.popleft()
        n = min(most, length)
        self.owed += 1
        self.control(RDMA_WR_COMPL, struct.pack(">I", n))
        return to, n

    # Spec 7, as the sink.

    def may_offer(self):
        answers = [mid for mid, *_ in self.waiting if mid in (RDMA_RD_COMPL, SEND_SM)]
        return (self.receiving_mode == PIPELINED and self.credits() >= 4 and self.held is None and not answers and not self.end_got
                and not self.offers_cancelled and len(self.offers) < self.max_adverts)

    def offer(self, length, to):
        self.offers.append((length, to))
        self.message(SINK_AVAIL, struct.pack(">IIQI", length, 5, to, self.non_discards))

    def cancel_offers(self):
        if self.offers and not self.offers_cancelled:
            self.offers_cancelled = True
            self.control(SINK_AVAIL_CANCEL)

    def end_offer(self, n):
        self.written.append((self.offers.popleft()[1], n))
        if not self.offers:
            self.offers_cancelled = False
            self.waiting = deque(w for w in self.waiting if w[0] != SINK_AVAIL_CANCEL)

    def end_offers(self):
        while self.offers:
            self.end_offer(0)

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
            self.sinks.clear()
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
        self.acked = ack
        if flags & REQ_PIPE and self.sending_mode == COMBINED:
            self.change_mode(PIPELINED)
        rest = message[SIZE:]
        if mid == DATA:
            return self.on_data(rest)
        self.posted += 1
        handler = {SRC_AVAIL: self.on_src_avail, RDMA_RD_COMPL: self.on_rd_compl, SEND_SM: self.on_send_sm,
                   SRC_AVAIL_CANCEL: self.on_cancel, DIS_CONN: self.on_end, ABORT_CONN: self.on_abort,
                   RDMA_WR_COMPL: self.on_wr_compl, SINK_AVAIL_CANCEL: self.on_sink_cancel, SINK_CANCEL_ACK: self.on_sink_cancel_ack,
                   MODE_CHANGE: self.on_mode_change, SINK_AVAIL: self.on_sink_avail, CH_RCV_BUF_ACK: self.on_nothing, SUSP_COMM_ACK: self.on_nothing}.get(mid)
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
        if self.offers:
            self.end_offer(0)
        else:
            self.non_discards += 1

    def on_src_avail(self, rest):
        check(len(rest) >= 17 if self.receiving_mode == COMBINED else len(rest) == 16, "SrcAvail carries a byte in Combined mode alone")
        if self.offers:  # spec 7, 3
            check(self.receiving_mode == PIPELINED, "SrcAvail of Combined mode meets a SinkAvail")
            return
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
        self.end_offers()

    def on_mode_change(self, rest):
        check(len(rest) == 4 and rest[1:] == bytes(3) and rest[0] in (COMBINED << 4, PIPELINED << 4), "a ModeChange that is not weft's")
        mode = rest[0] >> 4
        check(mode != self.receiving_mode and self.held is None, "a ModeChange that is not allowed")
        self.receiving_mode = mode
        if mode == COMBINED:
            self.end_offers()

    def on_sink_avail(self, rest):
        check(len(rest) == 20, "SinkAvail with more")
        length, _, to, non_discards = struct.unpack(">IIQI", rest)
        check(length >= self.size - SIZE, "a SinkAvail that holds no message")
        if self.end_sent:
            return
        crossed = self.sending_mode == COMBINED and self.left_pipelined is not None and self.acked < self.left_pipelined[0]
        check(crossed or self.sending_mode == PIPELINED, "SinkAvail outside of Pipelined mode")
        ahead = self.not_discarding - non_discards - (self.left_pipelined[1] if crossed else 0)
        check(ahead >= 0, "NonDiscards")
        if ahead > 0:
            self.not_discarding -= 1
        elif not crossed:
            check(len(self.sinks) < self.max_adverts, "too many SinkAvails")
            self.sinks.append((length, to))
            if self.advert is not None:
                check(self.acked < self.src_avail_number, "SinkAvail of a sink that holds a SrcAvail")
                self.settle()

    def on_wr_compl(self, rest):
        n, = struct.unpack(">I", rest)
        check(self.offers and 0 < n <= self.offers[0][0], "RdmaWrCompl of nothing, or too much")
        to, data = self.landed.popleft()
        check((to, len(data)) == (self.offers[0][1], n), "RdmaWrCompl of another Write")
        self.received += data
        self.end_offer(n)

    def on_sink_cancel(self, rest):
        check(not rest, "SinkAvailCancel with more")
        if self.sinks:
            self.sinks.clear()
            self.owed += 1
            self.control(SINK_CANCEL_ACK)

    def on_sink_cancel_ack(self, rest):
        check(not rest and self.offers_cancelled, "SinkCancelAck of nothing")
        self.end_offers()

    def on_abort(self, rest):
        self.aborted = True
