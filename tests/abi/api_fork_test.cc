// fork(2): the child's copy of the parent's objects is dead and says so; a device of its own works
// (spec/abi 7).
#include <unistd.h>

#include "tests/abi/api_fixture.h"
#include "tests/abi/in_child.h"
#include "tests/support/sanitizer.h"

namespace weft::test {
namespace {

class ForkTest : public PairTest {
 protected:
  void SetUp() override {
#ifdef WEFT_TSAN
    GTEST_SKIP() << "ThreadSanitizer does not let a child of a program with threads start any";
#endif
    PairTest::SetUp();
  }
};

TEST_F(ForkTest, ParentsObjectsAreDeadInTheChild) {
  const int failed = in_child([&] {
    ibv_wc wc;
    CHECK_IN_CHILD(1, ibv_poll_cq(a.cq.get(), 1, &wc) < 0);
    CHECK_IN_CHILD(2, a.post_recv(1, a.sge(0, 8)) == EIO);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    CHECK_IN_CHILD(3, a.post(wr) == EIO);
    CHECK_IN_CHILD(4, ibv_alloc_pd(context.get()) == nullptr && errno == EIO);
    CHECK_IN_CHILD(5, ibv_create_cq(context.get(), 1, nullptr, nullptr, 0) == nullptr);
    CHECK_IN_CHILD(6, to_state(a.qp.get(), IBV_QPS_ERR) == EIO);
    CHECK_IN_CHILD(7, ibv_req_notify_cq(a.cq.get(), 0) == EIO);
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(a.qp.get());
    ibv_wr_start(qp);
    ibv_wr_send(qp);
    CHECK_IN_CHILD(8, ibv_wr_complete(qp) == EIO);
    // The child may clean up; that is no news for the parent.
    CHECK_IN_CHILD(9, ibv_destroy_qp(a.qp.get()) == 0 && ibv_dereg_mr(a.mr.get()) == 0);
    CHECK_IN_CHILD(10, ibv_destroy_cq(a.cq.get()) == 0 && ibv_close_device(context.get()) == 0);
    return 0;
  });
  EXPECT_EQ(failed, 0);
}

TEST_F(ForkTest, ParentGoesOn) {
  EXPECT_EQ(in_child([] { return 0; }), 0);
  ASSERT_EQ(b.post_recv(1, b.sge(0, 100)), 0);
  fill(a.memory.data(), 100, 1);
  ibv_sge s = a.sge(0, 100);
  ibv_send_wr wr{};
  wr.sg_list = &s;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  ASSERT_EQ(a.post(wr), 0);
  EXPECT_EQ(next_completion(b.cq.get()).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(filled(b.memory.data(), 100, 1));
}

TEST_F(ForkTest, ChildOpensItsOwn) {
  const int failed = in_child([&] {
    ibv_context* own = ibv_open_device(context->device);
    CHECK_IN_CHILD(1, own != nullptr);
    ibv_pd* domain = ibv_alloc_pd(own);
    ibv_cq* cq = ibv_create_cq(own, 10, nullptr, nullptr, 0);
    CHECK_IN_CHILD(2, domain != nullptr && cq != nullptr);
    // To itself and back.
    ibv_qp_init_attr attr = rc_attributes(cq);
    ibv_qp* qp = ibv_create_qp(domain, &attr);
    CHECK_IN_CHILD(3, qp != nullptr);
    CHECK_IN_CHILD(4, to_init(qp) == 0 && to_rtr(qp, qp->qp_num) == 0 && to_rts(qp) == 0);
    ibv_recv_wr receive{};
    receive.wr_id = 1;
    ibv_recv_wr* bad = nullptr;
    CHECK_IN_CHILD(5, ibv_post_recv(qp, &receive, &bad) == 0);
    ibv_send_wr wr{};
    wr.wr_id = 2;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad_send = nullptr;
    CHECK_IN_CHILD(6, ibv_post_send(qp, &wr, &bad_send) == 0);
    for (int i = 0; i < 2; ++i) CHECK_IN_CHILD(7, next_completion(cq).status == IBV_WC_SUCCESS);
    CHECK_IN_CHILD(8, ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
    CHECK_IN_CHILD(9, ibv_dealloc_pd(domain) == 0 && ibv_close_device(own) == 0);
    return 0;
  });
  EXPECT_EQ(failed, 0);
}

// That thread may have been inside whatever there is, and is not there to come out of it.
TEST_F(ForkTest, ChildIsRefusedWhileAnotherThreadWas) {
  EXPECT_EQ(in_children_beside([&] {
              ibv_port_attr attributes;
              (void)ibv_query_port(context.get(), 9, &attributes);
            }),
            0);
}

}  // namespace
}  // namespace weft::test
