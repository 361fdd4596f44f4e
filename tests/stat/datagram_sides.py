"""One side of a UC or UD pair, whose messages are few enough to be counted one by one.

  datagram_sides.py receiver|sender uc|ud ADDRESS PORT PLAN

PLAN, in JSON, is the same for both: {"receives": N, "messages": [[KIND, COUNT, BYTES, HOW], ...]} with a KIND of OPCODES below. HOW
may be left out: as fast as can be. "alone": each is with the kernel before the next is posted, so that each goes by itself. "in step":
besides, the receiver has taken from its socket what came before the next is posted. With "growing": true each message is longer than BYTES by the
number of messages before it, so that its length tells which one it is; so does an immediate. KIND "stop" and "go on" do so to the
receiver, which loses by that what its socket has no room for.

The receiver posts its N receives before anything is sent, and no more. They meet by TCP at ADDRESS and PORT, where the receiver
listens. When all is said each prints a line of JSON, what it has seen completed, and stays until it is killed, so that its counters
may be looked at; with "each": true the receiver names each completion. A sender that gets SIGUSR1 then destroys its queue pair. Run by
/usr/bin/python3, for which Debian's pyverbs is built."""

import collections
import json
import os
import signal
import socket
import sys
import time

from pyverbs import enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

OPCODES = {"write": e.IBV_WR_RDMA_WRITE, "write_with_imm": e.IBV_WR_RDMA_WRITE_WITH_IMM, "send": e.IBV_WR_SEND,
           "send_with_imm": e.IBV_WR_SEND_WITH_IMM, "read": e.IBV_WR_RDMA_READ,
           "refused": e.IBV_WR_RDMA_WRITE}  # to memory that is not there
NAMES = {e.IBV_WC_RECV: "send", e.IBV_WC_RECV_RDMA_WITH_IMM: "write_with_imm"}
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
GRH = 40
DEPTH = 64
Q_KEY = 0x1234
QUIET = 0.5  # s; what comes that late has been given up, or is counted as late


class Side:
    def __init__(self, is_ud, plan):
        self.context = Context(name="weft0")
        self.is_ud = is_ud
        self.pd = PD(self.context)
        self.cq = CQ(self.context, plan["receives"] + DEPTH)
        self.plan = plan
        number = sum(count for _, count, *_ in plan["messages"])
        self.memory = MR(self.pd, max(size for _, _, size, *_ in plan["messages"]) + number + GRH, ACCESS)
        self.memory.write(bytes((i * 7 + i // 251) % 256 for i in range(self.memory.length)), self.memory.length)
        cap = QPCap(max_send_wr=DEPTH, max_recv_wr=plan["receives"] + 1, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_UD if is_ud else e.IBV_QPT_UC, scq=self.cq, rcq=self.cq, cap=cap))
        (self.qp.to_rts if is_ud else self.qp.to_init)(self.attributes())

    def attributes(self):
        attr = QPAttr(port_num=1)
        attr.qkey = Q_KEY
        attr.qp_access_flags = ACCESS
        return attr

    def name(self):
        return {"qpn": self.qp.qp_num, "gid": self.context.query_gid(1, 0).gid, "rkey": self.memory.rkey, "at": self.memory.buf,
                "pid": os.getpid()}

    def connect(self, peer):
        self.peer = peer
        way = AHAttr(gr=GlobalRoute(dgid=GID(peer["gid"]), sgid_index=0), is_global=1, port_num=1)
        if self.is_ud:
            self.handle = AH(self.pd, attr=way)
            return
        attr = self.attributes()
        attr.dest_qp_num = peer["qpn"]
        attr.ah_attr = way
        self.qp.to_rts(attr)

    def post_receives(self, count):
        sge = [SGE(self.memory.buf, self.memory.length, self.memory.lkey)]
        for _ in range(count):
            self.qp.post_recv(RecvWR(num_sge=1, sg=sge))

    def post(self, kind, size, number):
        length = size + number if self.plan.get("growing") else size
        wr = SendWR(opcode=OPCODES[kind], num_sge=1, sg=[SGE(self.memory.buf, length, self.memory.lkey)], imm_data=socket.htonl(number),
                    send_flags=e.IBV_SEND_SIGNALED)
        if self.is_ud:
            wr.set_wr_ud(self.handle, self.peer["qpn"], Q_KEY)
        elif not kind.startswith("send"):
            wr.set_wr_rdma(self.peer["rkey"] ^ 0x00dead00 if kind == "refused" else self.peer["rkey"], self.peer["at"])
        self.qp.post_send(wr)

    def completions(self):
        _, wcs = self.cq.poll(DEPTH)
        for wc in wcs:
            if wc.status != e.IBV_WC_SUCCESS:
                sys.exit(f"a completion of status {wc.status}")
        return wcs


    def waiting(self):
        """Bytes that came and are in the queue pair's socket yet: with another thread of weft at work, a look may find nothing."""
        port, sum_ = f":{self.qp.qp_num >> 8:04X}", 0
        for table in ("udp", "udp6"):
            with open(f"/proc/self/net/{table}", encoding="ascii") as f:
                sum_ += sum(int(words[4].partition(":")[2], 16) for words in map(str.split, f) if words[1].endswith(port))
        return sum_


def stop(pid, and_go_on):
    os.kill(pid, signal.SIGCONT if and_go_on else signal.SIGSTOP)
    while not and_go_on and open(f"/proc/{pid}/stat", encoding="utf-8").read().rpartition(") ")[2][0] != "T":
        time.sleep(0.001)


def send(side, meeting):
    posted = done = 0
    for kind, count, size, *how in side.plan["messages"]:
        if kind in ("stop", "go on"):
            stop(side.peer["pid"], kind == "go on")
            continue
        for _ in range(count):
            side.post(kind, size, posted)
            posted += 1
            while posted - done >= (1 if how else DEPTH):
                done += len(side.completions())
            if how == ["in step"]:
                meeting.sendall(b"?")
                meeting.recv(1)
        while done < posted:
            done += len(side.completions())
    meeting.sendall(b"x")
    return {"sent": posted, "pid": os.getpid()}


def receive(side, end):
    """Until the sender has said that it has sent all, and nothing comes any more. When it asks, it hears that nothing waits any more."""
    seen, until, asked = [], None, False
    end.setblocking(False)
    while True:
        looked = time.monotonic()
        came = side.completions()
        seen += came
        if asked and not came and not side.waiting():
            end.sendall(b"!")
            asked = False
        if until is None:
            try:
                asked = end.recv(1) == b"?"
            except BlockingIOError:
                continue
        if asked:
            continue
        if until is None or came:
            until = time.monotonic() + QUIET
        elif looked > until:
            break
    if side.plan.get("each"):
        return {"each": [[NAMES[wc.opcode], wc.byte_len, socket.ntohl(wc.imm_data) if wc.wc_flags & e.IBV_WC_WITH_IMM else None] for wc in seen]}
    return collections.Counter(NAMES[wc.opcode] for wc in seen)


def connect(where):
    until = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(where, 20)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def main():
    role, kind, address, port, plan = sys.argv[1:]
    plan = json.loads(plan)
    side = Side(kind == "ud", plan)
    if role == "receiver":
        side.post_receives(plan["receives"])
        with socket.create_server((address, int(port))) as listener:
            meeting, _ = listener.accept()
    else:
        meeting = connect((address, int(port)))
    lines = meeting.makefile("rw")
    print(json.dumps(side.name()), file=lines, flush=True)
    side.connect(json.loads(lines.readline()))
    if role == "receiver":
        print("ready", file=lines, flush=True)
        seen = receive(side, meeting)
    else:
        signal.signal(signal.SIGUSR1, lambda *_: side.qp.close())
        lines.readline()
        seen = send(side, meeting)
    print(json.dumps(seen), flush=True)
    while True:
        side.completions()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
