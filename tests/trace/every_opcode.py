"""Two queue pairs of one process that exchange a message of each kind, and at last one that is refused.

Run by /usr/bin/python3, for which Debian's pyverbs is built."""

import sys
import time

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

SIZE = 200_000
ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
          | e.IBV_ACCESS_MW_BIND)


class Side:
    def __init__(self, context):
        self.pd = PD(context)
        self.cq = CQ(context, 100)
        self.memory = MR(self.pd, SIZE, ACCESS)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq,
                                         cap=QPCap(max_send_wr=50, max_recv_wr=50, max_send_sge=1, max_recv_sge=1)))

    def connect(self, context, other):
        gid = context.query_gid(1, 0).gid
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = other.qp.qp_num
        attr.qp_access_flags = ACCESS & ~e.IBV_ACCESS_MW_BIND
        attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=GID(gid), sgid_index=0), is_global=1, port_num=1)
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 4
        attr.min_rnr_timer = 12
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, 7
        self.qp.to_rts(attr)

    def sge(self, n):
        return [SGE(self.memory.buf, n, self.memory.lkey)]

    def receive(self, n=1000):
        self.qp.post_recv(RecvWR(num_sge=1, sg=self.sge(n)))

    def completion(self):
        until = time.monotonic() + 20
        while time.monotonic() < until:
            n, wcs = self.cq.poll(1)
            if n:
                return wcs[0]
        sys.exit("no completion")

    def send(self, other, opcode, n, flags=0, rkey=None, expect=e.IBV_WC_SUCCESS, immediate=None):
        wr = SendWR(opcode=opcode, num_sge=1, sg=self.sge(n), send_flags=e.IBV_SEND_SIGNALED | flags)
        if immediate is not None:
            wr.imm_data = immediate  # or the key to invalidate: they share their place
        atomic = opcode in (e.IBV_WR_ATOMIC_CMP_AND_SWP, e.IBV_WR_ATOMIC_FETCH_AND_ADD)
        if atomic:
            wr.set_wr_atomic(other.memory.rkey, other.memory.buf, 1, 2)
        elif opcode in (e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_WRITE_WITH_IMM, e.IBV_WR_RDMA_READ):
            wr.set_wr_rdma(rkey or other.memory.rkey, other.memory.buf)
        self.qp.post_send(wr)
        wc = self.completion()
        if wc.status != expect:
            sys.exit(f"opcode {opcode}: status {wc.status}, not {expect}")


def main():
    context = Context(name="weft0")
    a, b = Side(context), Side(context)
    for side, other in ((a, b), (b, a)):
        side.connect(context, other)

    solicited = e.IBV_SEND_SOLICITED
    a.send(b, e.IBV_WR_RDMA_WRITE, SIZE)
    a.send(b, e.IBV_WR_RDMA_READ, 150_000)
    for opcode, flags in ((e.IBV_WR_SEND, 0), (e.IBV_WR_SEND, solicited), (e.IBV_WR_SEND_WITH_IMM, 0),
                          (e.IBV_WR_SEND_WITH_IMM, solicited), (e.IBV_WR_RDMA_WRITE_WITH_IMM, 0),
                          (e.IBV_WR_RDMA_WRITE_WITH_IMM, solicited)):
        b.receive()
        a.send(b, opcode, 777, flags, immediate=0x01020304 if opcode != e.IBV_WR_SEND else None)
        b.completion()
    for flags in (0, solicited):
        window = MW(b.pd, e.IBV_MW_TYPE_2)
        bind = SendWR(opcode=e.IBV_WR_BIND_MW, num_sge=0, send_flags=e.IBV_SEND_SIGNALED)
        bind.set_bind_wr(window, MWBindInfo(b.memory, b.memory.buf, 100, e.IBV_ACCESS_REMOTE_WRITE))
        b.qp.post_send(bind)
        b.completion()
        b.receive()
        a.send(b, e.IBV_WR_SEND_WITH_INV, 10, flags, immediate=bind.rkey)
        b.completion()
    a.send(b, e.IBV_WR_ATOMIC_FETCH_AND_ADD, 8)
    a.send(b, e.IBV_WR_ATOMIC_CMP_AND_SWP, 8)
    # A key that nobody has issued: the peer terminates the stream.
    a.send(b, e.IBV_WR_RDMA_WRITE, 100, rkey=a.memory.rkey ^ b.memory.rkey ^ 0x00dead00, expect=e.IBV_WC_REM_ACCESS_ERR)
    print("done")


if __name__ == "__main__":
    main()
