// How long a request takes room in its send queue: until its completion is polled. Programs that
// post until ENOMEM rely on it, with a completion queue as long as the send queue.

#include <gtest/gtest.h>

#include <vector>

#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

constexpr int kDepth = 4;

class SendSlots : public testing::Test {
 protected:
  static constexpr QpOptions kOptions{.depth = kDepth};
  SendSlots() {
    for (size_t i = 0; i < here.size(); ++i) here[i] = static_cast<uint8_t>(i * 11 + 5);
    connect(qp_a.get(), own_gid(a), qp_b.get(), own_gid(b), kOptions);
  }
  int write(bool signaled) {
    ibv_send_wr wr{};
    wr.wr_id = ++posted;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(there.data());
    wr.wr.rdma.rkey = to->rkey;
    return post_send(qp_a.get(), wr, {sge(here.data(), 100, from.get())});
  }
  // Of which the last one is signaled. When this returns, all are complete and none is polled.
  void complete_four() {
    ASSERT_EQ(ibv_req_notify_cq(cq_a.get(), 0), 0);
    for (int i = 1; i < kDepth; ++i) ASSERT_EQ(write(false), 0);
    ASSERT_EQ(write(true), 0);
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
  }

  Adapter a, b;
  ChannelPtr channel{ibv_create_comp_channel(a.context.get())};
  std::vector<uint8_t> here = std::vector<uint8_t>(100);
  std::vector<uint8_t> there = std::vector<uint8_t>(100);
  MrPtr from = a.reg(here.data(), here.size());
  MrPtr to = b.reg(there.data(), there.size());
  CqPtr cq_a = a.cq(kDepth, channel.get());
  CqPtr cq_b = b.cq(kDepth);
  QpPtr qp_a = make_qp(a, cq_a.get(), kOptions);
  QpPtr qp_b = make_qp(b, cq_b.get(), kOptions);
  uint64_t posted = 0;
};

TEST_F(SendSlots, are_free_when_the_completion_is_polled) {
  complete_four();
  // Those without a completion are over.
  for (int i = 1; i < kDepth; ++i) ASSERT_EQ(write(true), 0);
  EXPECT_EQ(write(true), ENOMEM);
  const auto done = collect(cq_a.get(), kDepth);
  ASSERT_EQ(done.size(), size_t{kDepth});
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(there, here);
  for (int i = 0; i < kDepth; ++i) ASSERT_EQ(write(true), 0);
  EXPECT_EQ(collect(cq_a.get(), kDepth).size(), size_t{kDepth}) << "no completion was lost";
}

// A queue pair that is reset has no completions left.
TEST_F(SendSlots, are_free_behind_a_reset) {
  complete_four();
  for (ibv_qp* qp : {qp_a.get(), qp_b.get()}) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = kAllAccess;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
  }
  connect(qp_a.get(), own_gid(a), qp_b.get(), own_gid(b), kOptions);
  for (int i = 0; i < kDepth; ++i) ASSERT_EQ(write(true), 0);
  EXPECT_EQ(collect(cq_a.get(), kDepth).size(), size_t{kDepth});
}

}  // namespace
}  // namespace weft::test
