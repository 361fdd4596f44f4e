// UC by rdma_cm in a process that has two engines.
#include <cstdlib>

#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

// A listener, and queue pairs that the program makes for its requests by itself.
struct OwnPairs final : CmTest {
  using CmTest::listen_on;
  using CmTest::listener;
  using CmTest::passive;
  void TestBody() override {}

  // Engines take queue pairs by turns: one of two is not the listener's.
  void make_pairs(ibv_context* device) {
    ibv_pd* const pd = ibv_alloc_pd(device);
    ibv_cq* const cq = ibv_create_cq(device, 16, nullptr, nullptr, 0);
    for (ibv_qp*& qp : pairs) {
      ibv_qp_init_attr a = qp_attributes();
      a.qp_type = IBV_QPT_UC;
      a.send_cq = a.recv_cq = cq;
      qp = ibv_create_qp(pd, &a);
      ASSERT_NE(qp, nullptr) << strerror(errno);
    }
  }
  // What comes of a request when the program accepts it with that queue pair.
  int accept_with(size_t i) {
    client = resolved(active.get(), port_of(listener));
    ibv_qp_init_attr a = qp_attributes();
    a.qp_type = IBV_QPT_UC;
    EXPECT_OK(rdma_create_qp(client.get(), nullptr, &a));
    rdma_conn_param p = parameters();
    EXPECT_OK(rdma_connect(client.get(), &p));
    const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    if (request == nullptr) return -1;
    if (pairs[i] == nullptr) make_pairs(request->id->verbs);
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    int mask = 0;
    EXPECT_OK(rdma_init_qp_attr(request->id, &init, &mask));
    EXPECT_OK(ibv_modify_qp(pairs[i], &init, mask));
    p.qp_num = pairs[i]->qp_num;
    return errno_of(rdma_accept(request->id, &p));
  }

  std::array<ibv_qp*, 2> pairs{};
};

// The session stays on the listener's socket.
TEST(CmUcEngines, AQueuePairOfAnotherEngineIsRefusedWithTheRemedy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto accept_with_both = [] {
    setenv("WEFT_ENGINES", "2", 1);
    OwnPairs sides;
    sides.listener = sides.listen_on(sides.passive.get());
    const int first = sides.accept_with(0);
    const int second = sides.accept_with(1);
    _exit(first + second == EINVAL && !testing::Test::HasFailure() ? 0 : 1);
  };
  EXPECT_EXIT(
      accept_with_both(), testing::ExitedWithCode(0),
      "is on another engine than the UC listener: make it by rdma_create_qp.*WEFT_ENGINES=1");
}

}  // namespace
}  // namespace weft::test
