// A receive of a shared queue that a message has taken and not used: it is there for whoever comes
// next (spec/wdp-uc 3.7, spec/wdp-ud 3).

#include <gtest/gtest.h>

#include "tests/support/counted.h"
#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

constexpr size_t kPairs = 2;
constexpr size_t kRoom = 200;
constexpr size_t kTooLong = 500;
constexpr size_t kHeader = 40;

// Each of `from` sends to one of `to`, which take from the same queue.
class UnusedReceive : public testing::TestWithParam<ibv_qp_type> {
 protected:
  UnusedReceive() : memory(kRoom + kTooLong), mr(adapter.reg(memory.data(), memory.size())) {
    for (size_t i = 0; i < kTooLong; ++i) memory[kRoom + i] = static_cast<uint8_t>(i * 7 + 1);
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    srq.reset(ibv_create_srq(adapter.pd.get(), &init));
    check(srq != nullptr, "ibv_create_srq");
    const ibv_gid own = own_gid(adapter);
    const QpOptions sender{.type = GetParam()};
    const QpOptions taker{.srq = srq.get(), .type = GetParam()};
    for (size_t i = 0; i < kPairs; ++i) {
      from.push_back(make_qp(adapter, sent.get(), sender));
      to.push_back(make_qp(adapter, came.get(), taker));
      connect(from[i].get(), own, to[i].get(), own, taker);
    }
    ibv_ah_attr attr{.grh = {.dgid = own, .hop_limit = 1}, .is_global = 1, .port_num = 1};
    ah.reset(ibv_create_ah(adapter.pd.get(), &attr));
    check(ah != nullptr, "ibv_create_ah");
  }

  void post(uint64_t wr_id) {
    ibv_sge place = sge(memory.data(), kRoom, mr.get());
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &place;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    check_errno(ibv_post_srq_recv(srq.get(), &wr, &bad), "ibv_post_srq_recv");
  }
  void send(size_t pair, size_t length) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (GetParam() == IBV_QPT_UD) {
      wr.wr.ud = {.ah = ah.get(), .remote_qpn = to[pair]->qp_num, .remote_qkey = kQKey};
    }
    check_errno(post_send(from[pair].get(), wr, {sge(&memory[kRoom], length, mr.get())}),
                "ibv_post_send");
  }
  // The next completion is of this receive, and of this pair's message.
  void expect(uint64_t wr_id, size_t pair, size_t length) {
    const auto done = collect(came.get(), 1);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[0].wr_id, wr_id);
    EXPECT_EQ(done[0].qp_num, to[pair]->qp_num);
    const size_t header = GetParam() == IBV_QPT_UD ? kHeader : 0;
    EXPECT_EQ(done[0].byte_len, header + length);
    EXPECT_EQ(std::memcmp(&memory[header], &memory[kRoom], length), 0);
  }

  Adapter adapter;
  std::vector<uint8_t> memory;  // a receive, and behind it what is sent
  MrPtr mr;
  CqPtr sent = adapter.cq(16);
  CqPtr came = adapter.cq(16);
  SrqPtr srq;
  std::vector<QpPtr> from, to;
  std::unique_ptr<ibv_ah, Freer<ibv_ah, ibv_destroy_ah>> ah;
};

TEST_P(UnusedReceive, of_a_message_that_was_too_long_is_another_queue_pairs) {
  const Counted dropped{"datagram_dropped"};
  post(7);
  send(0, kTooLong);
  dropped.expect({{"receive_too_small", 1}});
  send(1, 50);
  expect(7, 1, 50);
}

TEST_P(UnusedReceive, of_a_message_that_was_too_long_outlives_its_queue_pair) {
  const Counted dropped{"datagram_dropped"};
  post(7);
  send(0, kTooLong);
  dropped.expect({{"receive_too_small", 1}});
  to[0].reset();
  send(1, 50);
  expect(7, 1, 50);
}

INSTANTIATE_TEST_SUITE_P(Types, UnusedReceive, testing::Values(IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return type.param == IBV_QPT_UC ? "uc" : "ud"; });

}  // namespace
}  // namespace weft::test
