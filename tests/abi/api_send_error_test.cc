// SQE, the state of queue pairs of UC and UD after a request at fault, in the tables of
// ibv_modify_qp and ibv_query_qp. What goes on in it: tests/verbs/send_error_test.cc.
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

}  // namespace
}  // namespace weft::test
