"""One side of a UC or UD pair, whose messages are few enough to be counted one by one.

  datagram_sides.py receiver|sender uc|ud ADDRESS PORT PLAN

PLAN, in JSON, is the same for both: {"receives": N, "messages": [[KIND, COUNT, BYTES], ...]} with KIND write, write_with_imm or
send. The receiver posts its N receives before anything is sent, and no more. They meet by TCP at ADDRESS and PORT, where the
receiver listens. When all is said each prints a line of JSON, what it has seen completed, and stays until it is killed, so that its
counters may be looked at. Run by /usr/bin/python3, for which Debian's pyverbs is built."""

import collections
import json
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

OPCODES = {"write": e.IBV_WR_RDMA_WRITE, "write_with_imm": e.IBV_WR_RDMA_WRITE_WITH_IMM, "send": e.IBV_WR_SEND}
NAMES = {e.IBV_WC_RECV: "send", e.IBV_WC_RECV_RDMA_WITH_IMM: "write_with_imm"}
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
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
        self.memory = MR(self.pd, max(size for _, _, size in plan["messages"]) + GRH, ACCESS)
        cap = QPCap(max_send_wr=DEPTH, max_recv_wr=plan["receives"] + 1, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_UD if is_ud else e.IBV_QPT_UC, scq=self.cq, rcq=self.cq, cap=cap))
        (self.qp.to_rts if is_ud else self.qp.to_init)(self.attributes())

    def attributes(self):
        attr = QPAttr(port_num=1)
        attr.qkey = Q_KEY
        attr.qp_access_flags = ACCESS
        return attr

    def name(self):
        return {"qpn": self.qp.qp_num, "gid": self.context.query_gid(1, 0).gid, "rkey": self.memory.rkey, "at": self.memory.buf}

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

    def post(self, kind, size):
        wr = SendWR(opcode=OPCODES[kind], num_sge=1, sg=[SGE(self.memory.buf, size, self.memory.lkey)],
                    send_flags=e.IBV_SEND_SIGNALED)
        if self.is_ud:
            wr.set_wr_ud(self.handle, self.peer["qpn"], Q_KEY)
        elif kind != "send":
            wr.set_wr_rdma(self.peer["rkey"], self.peer["at"])
        self.qp.post_send(wr)

    def completions(self):
        _, wcs = self.cq.poll(DEPTH)
        for wc in wcs:
            if wc.status != e.IBV_WC_SUCCESS:
                sys.exit(f"a completion of status {wc.status}")
        return wcs


def send(side, messages):
    done = 0
    for kind, count, size in messages:
        for posted in range(count):
            while posted - done >= DEPTH:
                done += len(side.completions())
            side.post(kind, size)
        while done < count:
            done += len(side.completions())
        done = 0
    return {"sent": sum(count for _, count, _ in messages)}


def receive(side, end):
    """Until the sender has said that it has sent all, and nothing comes any more."""
    seen, until = collections.Counter(), None
    end.setblocking(False)
    while True:
        looked = time.monotonic()
        came = side.completions()
        seen.update(NAMES[wc.opcode] for wc in came)
        if until is None:
            try:
                end.recv(1)
            except BlockingIOError:
                continue
        if until is None or came:
            until = time.monotonic() + QUIET
        elif looked > until:
            return seen


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
        lines.readline()
        seen = send(side, plan["messages"])
        meeting.send(b"x")
    print(json.dumps(seen), flush=True)
    while True:
        side.completions()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
