// A shared receive queue among queue pairs that carry data: who takes which receive, who is woken
// by a new one, and the event when they run low.

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

struct Shared {
  static constexpr size_t kRoom = 64;
  static constexpr size_t kPairs = 3;

  explicit Shared(uint32_t receives = 16)
      : inbox(kRoom * receives),
        outbox(kRoom * kPairs),
        in(adapter.reg(inbox.data(), inbox.size())),
        out(adapter.reg(outbox.data(), outbox.size())),
        sends(adapter.cq(64)),
        arrivals(adapter.cq(64)) {
    for (size_t i = 0; i < outbox.size(); ++i) outbox[i] = static_cast<uint8_t>(i * 7 + i / 64 + 1);
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = receives, .max_sge = 1, .srq_limit = 0};
    srq.reset(ibv_create_srq(adapter.pd.get(), &init));
    check(srq != nullptr, "ibv_create_srq");
    for (size_t i = 0; i < kPairs; ++i) {
      from.push_back(make_qp(adapter, sends.get()));
      to.push_back(make_qp(adapter, arrivals.get(), {.srq = srq.get()}));
      connect(from[i].get(), own_gid(adapter), to[i].get(), own_gid(adapter));
    }
  }

  // Receives `first`, `first` + 1, ..: each has its own place.
  void post(uint64_t first, size_t count) {
    for (uint64_t id = first; id < first + count; ++id) {
      ibv_sge place = sge(inbox.data() + id * kRoom, kRoom, in.get());
      ibv_recv_wr wr{};
      wr.wr_id = id;
      wr.sg_list = &place;
      wr.num_sge = 1;
      ibv_recv_wr* bad = nullptr;
      check_errno(ibv_post_srq_recv(srq.get(), &wr, &bad), "ibv_post_srq_recv");
    }
  }
  void send(size_t pair) {
    ibv_send_wr wr{};
    wr.wr_id = pair;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    check_errno(
        post_send(from[pair].get(), wr, {sge(outbox.data() + pair * kRoom, kRoom, out.get())}),
        "ibv_post_send");
  }
  // The next message: of which pair, in which receive.
  struct Arrival {
    size_t pair;
    uint64_t receive;
  };
  std::optional<Arrival> next() {
    const auto done = collect(arrivals.get(), 1);
    if (done.size() != 1 || done[0].status != IBV_WC_SUCCESS) return {};
    for (size_t i = 0; i < kPairs; ++i) {
      if (to[i] == nullptr || to[i]->qp_num != done[0].qp_num) continue;
      EXPECT_TRUE(std::equal(outbox.begin() + static_cast<ptrdiff_t>(i * kRoom),
                             outbox.begin() + static_cast<ptrdiff_t>((i + 1) * kRoom),
                             inbox.begin() + static_cast<ptrdiff_t>(done[0].wr_id * kRoom)))
          << "the bytes of the pair that the completion names";
      return Arrival{i, done[0].wr_id};
    }
    return {};
  }
  bool limit_event(int wait_ms) {
    pollfd p{adapter.context->async_fd, POLLIN, 0};
    if (poll(&p, 1, wait_ms) != 1) return false;
    ibv_async_event e{};
    check(ibv_get_async_event(adapter.context.get(), &e) == 0, "ibv_get_async_event");
    EXPECT_EQ(e.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT_EQ(e.element.srq, srq.get());
    ibv_ack_async_event(&e);
    return true;
  }
  void arm(uint32_t limit) {
    ibv_srq_attr attr{};
    attr.srq_limit = limit;
    check_errno(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT), "ibv_modify_srq");
  }

  Adapter adapter;
  std::vector<uint8_t> inbox, outbox;
  MrPtr in, out;
  CqPtr sends, arrivals;
  SrqPtr srq;
  std::vector<QpPtr> from, to;
};

TEST(SharedReceiveQueue, are_taken_in_order_by_whoever_needs_one) {
  Shared s;
  s.post(0, 6);
  uint64_t receive = 0;
  for (const size_t pair : {2U, 0U, 0U, 1U, 2U, 1U}) {
    s.send(pair);
    const auto a = s.next();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->pair, pair);
    EXPECT_EQ(a->receive, receive++);
  }
  EXPECT_EQ(collect(s.sends.get(), 6).size(), 6U);
}

// Each queue pair that waits is woken, and each receive goes to one of them.
TEST(SharedReceiveQueue, wake_those_that_wait) {
  Shared s;
  for (size_t pair = 0; pair < Shared::kPairs; ++pair) s.send(pair);
  usleep(20'000);
  ibv_wc early;
  EXPECT_EQ(ibv_poll_cq(s.arrivals.get(), 1, &early), 0);
  std::vector<size_t> seen;
  for (uint64_t id = 0; id < Shared::kPairs; ++id) {
    s.post(id, 1);
    const auto a = s.next();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->receive, id);
    seen.push_back(a->pair);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2}));
}

// One that waited and is gone leaves its place to the others.
TEST(SharedReceiveQueue, forget_a_queue_pair_that_is_gone) {
  Shared s;
  s.send(0);
  s.send(1);
  usleep(20'000);
  s.to[0].reset();
  s.post(0, 1);
  const auto a = s.next();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->pair, 1U);
  EXPECT_EQ(a->receive, 0U);
}

TEST(SharedReceiveQueue, tell_once_that_they_run_low) {
  Shared s;
  s.post(0, 5);
  s.arm(3);
  s.send(0);
  ASSERT_TRUE(s.next());
  s.send(1);
  ASSERT_TRUE(s.next());
  EXPECT_FALSE(s.limit_event(0)) << "three are left";
  s.send(2);
  ASSERT_TRUE(s.next());
  EXPECT_TRUE(s.limit_event(5000)) << "two are left";
  s.send(2);
  ASSERT_TRUE(s.next());
  EXPECT_FALSE(s.limit_event(0)) << "once, until it is armed again";
  ibv_srq_attr attr{};
  ASSERT_EQ(ibv_query_srq(s.srq.get(), &attr), 0);
  EXPECT_EQ(attr.srq_limit, 0U) << "and it is disarmed";
  s.post(5, 2);
  s.arm(3);
  s.send(0);
  ASSERT_TRUE(s.next());
  EXPECT_TRUE(s.limit_event(5000));
}

TEST(SharedReceiveQueue, tell_a_program_that_arms_behind_the_last_one) {
  Shared s;
  s.post(0, 1);
  s.send(0);
  ASSERT_TRUE(s.next());
  s.arm(1);
  s.send(1);
  EXPECT_TRUE(s.limit_event(5000)) << "a message waits for a receive";
  s.post(1, 1);
  EXPECT_TRUE(s.next());
}

}  // namespace
}  // namespace weft::test
