// Completion queues and channels.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>

#include "tests/abi/api_fixture.h"

namespace weft::test {
namespace {

class CqTest : public DeviceTest {
 protected:
  ibv_cq* create(int entries, int vector = 0, ibv_comp_channel* channel = nullptr) {
    return ibv_create_cq(context.get(), entries, &user, channel, vector);
  }
  ibv_cq_ex* create_ex(ibv_cq_init_attr_ex attr) { return ibv_create_cq_ex(context.get(), &attr); }
  int user = 0;
};

TEST_F(CqTest, Limits) {
  ibv_device_attr attr;
  ASSERT_EQ(ibv_query_device(context.get(), &attr), 0);
  EXPECT_NO_OBJECT(EINVAL, create(0));
  EXPECT_NO_OBJECT(EINVAL, create(-1));
  EXPECT_NO_OBJECT(EINVAL, create(attr.max_cqe + 1));
  EXPECT_NO_OBJECT(EINVAL, create(10, context->num_comp_vectors));
  EXPECT_NO_OBJECT(EINVAL, create(10, -1));
  const Owned<ibv_cq> most{create(attr.max_cqe)};
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(most->cqe, attr.max_cqe);
  EXPECT_EQ(most->cq_context, &user);
}

TEST_F(CqTest, Resize) {
  const Owned<ibv_cq> cq{create(10)};
  EXPECT_EQ(ibv_resize_cq(cq.get(), 20), 0);
  EXPECT_EQ(cq->cqe, 31);
  EXPECT_REFUSED(EINVAL, ibv_resize_cq(cq.get(), 0));
  EXPECT_REFUSED(EINVAL, ibv_resize_cq(cq.get(), INT32_MAX));
  EXPECT_EQ(cq->cqe, 31);
}

TEST_F(CqTest, RoomIsAPowerOfTwoLessOne) {
  for (const auto& [asked, room] :
       {std::pair{1, 1}, {2, 3}, {3, 3}, {4, 7}, {128, 255}, {255, 255}}) {
    const Owned<ibv_cq> cq{create(asked)};
    ASSERT_NE(cq, nullptr);
    EXPECT_EQ(cq->cqe, room) << asked;
  }
}

TEST_F(CqTest, ChannelsInUseStay) {
  Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  ASSERT_NE(channel, nullptr);
  Owned<ibv_cq> cq{create(10, 0, channel.get())};
  EXPECT_EQ(channel->refcnt, 1);
  EXPECT_REFUSED(EBUSY, ibv_destroy_comp_channel(channel.get()));
  cq.reset();
  EXPECT_EQ(channel->refcnt, 0);
}

TEST_F(CqTest, QueuesInUseStay) {
  Owned<ibv_cq> cq{create(10)};
  ibv_qp_init_attr attr = rc_attributes(cq.get());
  const Owned<ibv_qp> qp{ibv_create_qp(pd.get(), &attr)};
  ASSERT_NE(qp, nullptr);
  EXPECT_REFUSED(EBUSY, ibv_destroy_cq(cq.get()));
}

TEST_F(CqTest, ChannelMadeNonBlockingSaysAgain) {
  const Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
  ibv_cq* cq = nullptr;
  void* user_context = nullptr;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(channel.get(), &cq, &user_context), -1);
  EXPECT_EQ(errno, EAGAIN);
  pollfd fd{.fd = channel->fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&fd, 1, 0), 0);
}

// qperf ends its tests by a signal to the thread that waits.
TEST_F(CqTest, SignalsEndTheWait) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  const Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  const std::atomic<pid_t> waiter{gettid()};
  std::atomic<bool> done{false};
  const pthread_t thread = pthread_self();
  std::thread caller{[&] {
    // Again and again: it may have slept somewhere else.
    while (falls_asleep(waiter, done)) pthread_kill(thread, SIGUSR1);
  }};
  ibv_cq* cq = nullptr;
  void* user_context = nullptr;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(channel.get(), &cq, &user_context), -1);
  EXPECT_EQ(errno, EINTR);
  done.store(true);
  caller.join();
  sigaction(SIGUSR1, &before, nullptr);
}

// As inside the read(2) of other providers, whether an event is there or not.
TEST_F(CqTest, ACancelledThreadGetsNoEvent) {
  const Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
  std::atomic<bool> went_on{false};
  std::thread{[&] {
    pthread_cancel(pthread_self());
    ibv_cq* cq = nullptr;
    void* user_context = nullptr;
    ibv_get_cq_event(channel.get(), &cq, &user_context);
    went_on = true;
  }}.join();
  EXPECT_FALSE(went_on);
}

TEST_F(CqTest, ExtendedLimits) {
  EXPECT_NO_OBJECT(EINVAL, create_ex({.cqe = 0}));
  EXPECT_NO_OBJECT(EINVAL, create_ex({.cqe = UINT32_MAX}));
  EXPECT_NO_OBJECT(EINVAL, create_ex({.cqe = 10, .comp_vector = 5}));
  EXPECT_NO_OBJECT(EINVAL, create_ex({.cqe = 10, .comp_mask = 1 << 5}));
  for (const uint64_t flag : {uint64_t{IBV_WC_EX_WITH_CVLAN}, uint64_t{IBV_WC_EX_WITH_FLOW_TAG},
                              uint64_t{IBV_WC_EX_WITH_TM_INFO}, uint64_t{1} << 40}) {
    EXPECT_NO_OBJECT(EOPNOTSUPP, create_ex({.cqe = 10, .wc_flags = flag}));
  }
  EXPECT_NO_OBJECT(EOPNOTSUPP, create_ex({.cqe = 10,
                                          .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
                                          .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN}));
}

TEST_F(CqTest, EmptyExtendedQueue) {
  const Owned<ibv_cq_ex> cq{create_ex({.cqe = 10, .wc_flags = IBV_WC_STANDARD_FLAGS})};
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr attr{};
  // The second one would wait for ever if the first had kept the queue.
  EXPECT_EQ(ibv_start_poll(cq.get(), &attr), ENOENT);
  EXPECT_EQ(ibv_start_poll(cq.get(), &attr), ENOENT);
  attr.comp_mask = 1;
  EXPECT_EQ(ibv_start_poll(cq.get(), &attr), EINVAL);
}

// --- completions, of receives that are flushed: they need no peer

class FlushTest : public CqTest {
 protected:
  void use(ibv_cq* queue) {
    ibv_qp_init_attr attr = rc_attributes(queue);
    qp.reset(ibv_create_qp(pd.get(), &attr));
    ASSERT_NE(qp, nullptr);
    ASSERT_EQ(to_init(qp.get()), 0);
    for (uint64_t id = 1; id <= 3; ++id) {
      ibv_recv_wr wr{.wr_id = id, .next = nullptr, .sg_list = nullptr, .num_sge = 0};
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_recv(qp.get(), &wr, &bad), 0);
    }
  }
  void flush() { ASSERT_EQ(to_state(qp.get(), IBV_QPS_ERR), 0); }
  // Waits for it.
  void take_event() {
    ibv_cq* announced = nullptr;
    void* user_context = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel.get(), &announced, &user_context), 0);
    EXPECT_EQ(announced, cq.get());
    ibv_ack_cq_events(cq.get(), 1);
  }
  Owned<ibv_comp_channel> channel;
  Owned<ibv_cq> cq;
  Owned<ibv_qp> qp;
};

TEST_F(FlushTest, Poll) {
  cq.reset(create(10));
  use(cq.get());
  flush();
  ibv_wc wc[8];
  ASSERT_EQ(ibv_poll_cq(cq.get(), 2, wc), 2);
  ASSERT_EQ(ibv_poll_cq(cq.get(), 6, wc + 2), 1);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(wc[i].wr_id, i + 1);
    EXPECT_EQ(wc[i].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc[i].qp_num, qp->qp_num);
  }
  EXPECT_EQ(ibv_poll_cq(cq.get(), 8, wc), 0);
  EXPECT_EQ(ibv_poll_cq(cq.get(), 0, wc), 0);
}

TEST_F(FlushTest, ResizeKeepsWhatIsIn) {
  cq.reset(create(10));
  use(cq.get());
  flush();
  EXPECT_REFUSED(EINVAL, ibv_resize_cq(cq.get(), 1));
  EXPECT_EQ(ibv_resize_cq(cq.get(), 2), 0);
  EXPECT_EQ(next_completion(cq.get()).wr_id, 1U);
}

TEST_F(FlushTest, ReadFieldByField) {
  constexpr uint64_t kClock = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  ibv_cq_ex* ex = create_ex({.cqe = 10, .wc_flags = IBV_WC_STANDARD_FLAGS | kClock});
  ASSERT_NE(ex, nullptr);
  cq.reset(ibv_cq_ex_to_cq(ex));
  use(cq.get());
  timespec before{};
  clock_gettime(CLOCK_REALTIME, &before);
  flush();
  timespec after{};
  clock_gettime(CLOCK_REALTIME, &after);
  const auto ns = [](const timespec& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  };
  ibv_poll_cq_attr attr{};
  ASSERT_EQ(ibv_start_poll(ex, &attr), 0);
  for (uint64_t id = 1;; ++id) {
    EXPECT_EQ(ex->wr_id, id);
    EXPECT_EQ(ex->status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(ibv_wc_read_qp_num(ex), qp->qp_num);
    EXPECT_EQ(ibv_wc_read_opcode(ex), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_wc_flags(ex), 0U);
    EXPECT_GE(ibv_wc_read_completion_wallclock_ns(ex), ns(before));
    EXPECT_LE(ibv_wc_read_completion_wallclock_ns(ex), ns(after));
    const int next = ibv_next_poll(ex);
    if (id == 3) {
      EXPECT_EQ(next, ENOENT);
      break;
    }
    ASSERT_EQ(next, 0);
  }
  ibv_end_poll(ex);
  EXPECT_EQ(ibv_start_poll(ex, &attr), ENOENT);
}

TEST_F(FlushTest, OneEventForEachRequest) {
  channel.reset(ibv_create_comp_channel(context.get()));
  cq.reset(create(10, 0, channel.get()));
  use(cq.get());
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  flush();
  ibv_cq* announced = nullptr;
  void* user_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &announced, &user_context), 0);
  EXPECT_EQ(announced, cq.get());
  EXPECT_EQ(user_context, &user);
  pollfd fd{.fd = channel->fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&fd, 1, 0), 0);
  // fio acknowledges completions instead of events: more than it got.
  ibv_ack_cq_events(cq.get(), 3);
}

// UCX arms behind its last poll and then sleeps: what came in between has to wake it.
TEST_F(FlushTest, WhatIsThereAlreadyIsAnnounced) {
  channel.reset(ibv_create_comp_channel(context.get()));
  cq.reset(create(10, 0, channel.get()));
  use(cq.get());
  flush();
  pollfd fd{.fd = channel->fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&fd, 1, 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  ASSERT_EQ(poll(&fd, 1, 0), 1);
  ibv_cq* announced = nullptr;
  void* user_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &announced, &user_context), 0);
  EXPECT_EQ(announced, cq.get());
  ibv_ack_cq_events(cq.get(), 1);
  ibv_wc wc{};
  while (ibv_poll_cq(cq.get(), 1, &wc) == 1) {
  }
  // What was polled is announced by nobody.
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  EXPECT_EQ(poll(&fd, 1, 0), 0);
}

TEST_F(FlushTest, EventsWakeTheWaiter) {
  channel.reset(ibv_create_comp_channel(context.get()));
  cq.reset(create(10, 0, channel.get()));
  use(cq.get());
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  expect_waits([&] { take_event(); }, [&] { flush(); });
}

// It takes the event, arms, and then reads one completion after the other, as ibv_rc_pingpong does
// that shows times: what it reads last is no event's.
TEST_F(FlushTest, WhatIsReadInOnePollIsNotAnnouncedAgain) {
  channel.reset(ibv_create_comp_channel(context.get()));
  ibv_cq_ex* ex = create_ex({.cqe = 10, .channel = channel.get(), .wc_flags = 0});
  ASSERT_NE(ex, nullptr);
  cq.reset(ibv_cq_ex_to_cq(ex));
  use(cq.get());
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  expect_waits([&] { take_event(); }, [&] { flush(); });
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  pollfd fd{.fd = channel->fd, .events = POLLIN, .revents = 0};
  ibv_poll_cq_attr attr{};
  ASSERT_EQ(ibv_start_poll(ex, &attr), 0);
  EXPECT_EQ(ibv_next_poll(ex), 0);
  EXPECT_EQ(ibv_next_poll(ex), 0);
  EXPECT_EQ(ibv_next_poll(ex), ENOENT);
  ibv_end_poll(ex);
  EXPECT_EQ(poll(&fd, 1, 0), 0);
}

TEST_F(FlushTest, DestroyWaitsForAcknowledgements) {
  channel.reset(ibv_create_comp_channel(context.get()));
  cq.reset(create(10, 0, channel.get()));
  use(cq.get());
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  flush();
  ibv_cq* announced = nullptr;
  void* user_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &announced, &user_context), 0);
  qp.reset();
  expect_waits([&] { cq.reset(); }, [&] { ibv_ack_cq_events(announced, 1); });
}

TEST_F(FlushTest, EventsNobodyFetchedGoWithTheQueue) {
  channel.reset(ibv_create_comp_channel(context.get()));
  cq.reset(create(10, 0, channel.get()));
  use(cq.get());
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  flush();
  pollfd fd{.fd = channel->fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&fd, 1, 0), 1);
  qp.reset();
  cq.reset();
  EXPECT_EQ(poll(&fd, 1, 0), 0);
}

TEST_F(FlushTest, CompletionsGoWithTheQueuePair) {
  cq.reset(create(10));
  use(cq.get());
  flush();
  qp.reset();
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
}

TEST_F(FlushTest, AllOfTheRoomCanBeUsed) {
  cq.reset(create(2));
  use(cq.get());
  flush();
  ibv_wc wc[4];
  EXPECT_EQ(ibv_poll_cq(cq.get(), 4, wc), 3);
}

TEST_F(FlushTest, OverrunIsAnEvent) {
  cq.reset(create(1));
  use(cq.get());
  flush();
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, cq.get());
  ibv_ack_async_event(&event);
}

}  // namespace
}  // namespace weft::test
