// Requests that fail by themselves; and SQE, the state of queue pairs of UC and UD after a request
// at fault, in the tables of ibv_modify_qp and ibv_query_qp. What goes on in it:
// tests/verbs/send_error_test.cc.
#include "tests/abi/api_fixture.h"

namespace weft::test {
namespace {

class SendErrorTest : public DeviceTest {
 protected:
  static ibv_qp_state state(ibv_qp* qp) {
    ibv_qp_attr a;
    ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(qp, &a, IBV_QP_STATE, &init), 0);
    return a.qp_state;
  }
  Owned<ibv_cq> cq{ibv_create_cq(context.get(), 100, nullptr, nullptr, 0)};
};

// Only a request at fault leads into SQE, and only of UC and UD; ibv_modify_qp leads out of it.
TEST_F(SendErrorTest, HasAStateOfItsOwn) {
  for (const bool uc : {true, false}) {
    ibv_qp_init_attr init = rc_attributes(cq.get());
    init.qp_type = uc ? IBV_QPT_UC : IBV_QPT_RC;
    const Owned<ibv_qp> qp{ibv_create_qp(pd.get(), &init)};
    ASSERT_EQ(to_init(qp.get()), 0);
    EXPECT_REFUSED(EINVAL, to_state(qp.get(), IBV_QPS_SQE));
    constexpr int kOfRc = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    ibv_qp_attr a = rtr_attributes(context.get(), qp->qp_num);
    ASSERT_EQ(ibv_modify_qp(qp.get(), &a, uc ? kRtrMask & ~kOfRc : kRtrMask), 0);
    a = rts_attributes();
    ASSERT_EQ(ibv_modify_qp(qp.get(), &a, uc ? IBV_QP_STATE | IBV_QP_SQ_PSN : kRtsMask), 0);
    EXPECT_REFUSED(EINVAL, to_state(qp.get(), IBV_QPS_SQE));
    std::array<uint8_t, 64> data{};
    ibv_sge nobodys{reinterpret_cast<uintptr_t>(data.data()), data.size(), 0x7ffffff0};
    ibv_send_wr wr{};
    wr.wr_id = 5;
    wr.sg_list = &nobodys;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp.get(), &wr, &bad), 0);
    const ibv_wc wc = next_completion(cq.get());
    EXPECT_EQ(wc.wr_id, 5U);
    EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(state(qp.get()), uc ? IBV_QPS_SQE : IBV_QPS_ERR);
    if (!uc) continue;
    EXPECT_REFUSED(EINVAL, to_state(qp.get(), IBV_QPS_SQE));
    EXPECT_REFUSED(EINVAL, to_state(qp.get(), IBV_QPS_SQD));
    EXPECT_EQ(to_state(qp.get(), IBV_QPS_RTS), 0);
    EXPECT_EQ(qp->state, IBV_QPS_RTS);
    EXPECT_EQ(state(qp.get()), IBV_QPS_RTS);
  }
}

using PeerRefusal = PairTest;

// InfiniBand: the responder answers "invalid request".
TEST_F(PeerRefusal, AnAtomicOnNoMultipleOfEight) {
  ibv_sge before = a.sge(0, 8);
  ibv_send_wr wr{};
  wr.wr_id = 5;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &before;
  wr.num_sge = 1;
  wr.wr.atomic = {.remote_addr = b.address(4), .compare_add = 1, .swap = 0, .rkey = b.mr->rkey};
  ASSERT_EQ(a.post(wr), 0);
  const ibv_wc wc = next_completion(a.cq.get());
  EXPECT_EQ(wc.wr_id, 5U);
  EXPECT_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR) << ibv_wc_status_str(wc.status);
}

// What a program sets is what it may have under way at most; its peer may serve less.
TEST_F(PairTest, TheQueuePairTellsHowManyReadsWereAgreedOn) {
  const auto told = [](ibv_qp* qp) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
    return std::pair{int{attr.max_rd_atomic}, int{attr.max_dest_rd_atomic}};
  };
  const auto connect = [&](const Side& s, const Side& peer, uint8_t asks, uint8_t serves) {
    ASSERT_EQ(to_state(s.qp.get(), IBV_QPS_RESET), 0);
    ASSERT_EQ(to_init(s.qp.get()), 0);
    ibv_qp_attr attr = rtr_attributes(context.get(), peer.qp->qp_num);
    attr.max_dest_rd_atomic = serves;
    ASSERT_EQ(ibv_modify_qp(s.qp.get(), &attr, kRtrMask), 0);
    attr = rts_attributes();
    attr.max_rd_atomic = asks;
    ASSERT_EQ(ibv_modify_qp(s.qp.get(), &attr, kRtsMask), 0);
  };
  connect(a, b, 9, 3);
  connect(b, a, 2, 5);
  ibv_sge from = a.sge(0, 8);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &from;
  wr.num_sge = 1;
  wr.wr.rdma = {.remote_addr = b.address(), .rkey = b.mr->rkey};
  ASSERT_EQ(a.post(wr), 0);
  ASSERT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(told(a.qp.get()), (std::pair{5, 3}));
  EXPECT_EQ(told(b.qp.get()), (std::pair{2, 5}));
}

}  // namespace
}  // namespace weft::test
