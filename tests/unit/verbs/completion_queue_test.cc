#include "verbs/completion_queue.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <thread>

#include "tests/unit/verbs/fixture.h"

namespace weft::verbs {
namespace {

using Entry = CompletionQueue::Entry;

Entry entry(uint64_t wr_id, bool solicited = false, Status status = Status::success,
            Qpn qpn = Qpn{7}) {
  return {{.wr_id = wr_id, .status = status, .qpn = qpn}, solicited};
}

class CompletionQueueTest : public VerbsTest {
 protected:
  static void push(CompletionQueue& cq, const Entry& e) { cq.push({&e, 1}); }
  static std::vector<uint64_t> drain(CompletionQueue& cq) {
    std::vector<uint64_t> ids;
    Completion c[7];
    while (const size_t n = cq.pop(c)) {
      for (size_t i = 0; i < n; ++i) ids.push_back(c[i].wr_id);
    }
    return ids;
  }
  static bool readable(int fd) {
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&p, 1, 0) == 1;
  }
  CompletionChannel channel{adapter()};
};

TEST_F(CompletionQueueTest, InOrderThroughManyRounds) {
  CompletionQueue cq(context, 5, nullptr, nullptr, false);
  uint64_t in = 0;
  uint64_t out = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 1 + round % 5; ++i) push(cq, entry(in++));
    for (const uint64_t id : drain(cq)) EXPECT_EQ(id, out++);
  }
  EXPECT_EQ(in, out);
  Completion c;
  EXPECT_EQ(cq.poll({&c, 1}), 0U);
}

TEST_F(CompletionQueueTest, GrowsToItsCapacityAndNoFurther) {
  constexpr uint32_t kCapacity = 1000;
  CompletionQueue cq(context, kCapacity, nullptr, &cq, false);
  for (uint64_t i = 0; i < kCapacity; ++i) push(cq, entry(i));
  EXPECT_FALSE(context.events().try_pop());
  push(cq, entry(kCapacity));
  push(cq, entry(kCapacity + 1));
  const auto event = context.events().try_pop();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, EventType::cq_err);
  EXPECT_EQ(event->object, &cq);
  EXPECT_FALSE(context.events().try_pop()) << "said once";
  const auto ids = drain(cq);
  ASSERT_EQ(ids.size(), kCapacity);
  for (uint64_t i = 0; i < kCapacity; ++i) EXPECT_EQ(ids[i], i) << "what was there stays";
}

TEST_F(CompletionQueueTest, ResizeKeepsWhatIsInIt) {
  CompletionQueue cq(context, 600, nullptr, nullptr, false);
  for (uint64_t i = 0; i < 500; ++i) push(cq, entry(i));
  const auto small = cq.resize(499);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error(), Errc::invalid);
  EXPECT_EQ(cq.capacity(), 600U);
  ASSERT_TRUE(cq.resize(500).ok());
  push(cq, entry(999));
  EXPECT_TRUE(context.events().try_pop()) << "full now";
  ASSERT_TRUE(cq.resize(2000).ok());
  push(cq, entry(500));
  const auto ids = drain(cq);
  ASSERT_EQ(ids.size(), 501U);
  for (uint64_t i = 0; i <= 500; ++i) EXPECT_EQ(ids[i], i);
  ASSERT_TRUE(cq.resize(1).ok());
  push(cq, entry(1));
  EXPECT_EQ(drain(cq), std::vector<uint64_t>{1});
}

TEST_F(CompletionQueueTest, TimestampsWhereAskedFor) {
  CompletionQueue plain(context, 4, nullptr, nullptr, false);
  CompletionQueue stamped(context, 4, nullptr, nullptr, true);
  Completion c;
  push(plain, entry(1));
  ASSERT_EQ(plain.pop({&c, 1}), 1U);
  EXPECT_EQ(c.timestamp, 0);
  push(stamped, entry(1));
  ASSERT_EQ(stamped.pop({&c, 1}), 1U);
  EXPECT_GT(c.timestamp, 1'600'000'000'000'000'000) << "nanoseconds of the wall clock";
}

TEST_F(CompletionQueueTest, PurgeTakesTheCompletionsOfOneQueuePair) {
  CompletionQueue cq(context, 300, nullptr, nullptr, false);
  for (uint64_t i = 0; i < 290; ++i)
    push(cq, entry(i, false, Status::success, Qpn{static_cast<uint32_t>(i % 3)}));
  Completion c[10];
  ASSERT_EQ(cq.pop(c), 10U);
  cq.purge(Qpn{1});
  uint64_t expected = 11;
  for (const uint64_t id : drain(cq)) {
    EXPECT_EQ(id, expected) << "the others, in order";
    expected += expected % 3 == 0 ? 2 : 1;
  }
  push(cq, entry(7));
  EXPECT_EQ(drain(cq), std::vector<uint64_t>{7});
}

// --- announcing

TEST_F(CompletionQueueTest, AnArmedQueueAnnouncesOnce) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  push(cq, entry(1));
  EXPECT_FALSE(readable(channel.fd())) << "not armed";
  EXPECT_EQ(drain(cq).size(), 1U);
  cq.request_notify(false);
  EXPECT_FALSE(readable(channel.fd())) << "the next completion, not one that was polled";
  push(cq, entry(2));
  push(cq, entry(3));
  EXPECT_TRUE(readable(channel.fd()));
  const auto next = channel.next();
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*next, &cq);
  EXPECT_FALSE(readable(channel.fd()));
  EXPECT_EQ(cq.announced(), 1U);
  push(cq, entry(4));
  EXPECT_FALSE(readable(channel.fd())) << "to be armed anew";
}

// UCX polls some of them, arms and sleeps.
TEST_F(CompletionQueueTest, WhatIsNotPolledIsAnnouncedWithEachArming) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  push(cq, entry(1));
  push(cq, entry(2));
  for (int i = 0; i < 2; ++i) {
    cq.request_notify(false);
    EXPECT_TRUE(readable(channel.fd()));
    ASSERT_TRUE(channel.next().ok());
    Completion one[1];
    EXPECT_EQ(cq.pop(one), 1U);
  }
  cq.request_notify(false);
  EXPECT_FALSE(readable(channel.fd())) << "all were polled";
}

// perftest takes an event, arms, and polls then: it counts on one event for each completion.
TEST_F(CompletionQueueTest, WhatWasAnnouncedIsNotAnnouncedAgainBeforeThePoll) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  cq.request_notify(false);
  push(cq, entry(1));
  ASSERT_TRUE(channel.next().ok());
  cq.request_notify(false);
  EXPECT_FALSE(readable(channel.fd())) << "it was told of it";
  push(cq, entry(2));
  EXPECT_TRUE(readable(channel.fd())) << "it is armed";
  push(cq, entry(3));
  ASSERT_TRUE(channel.next().ok());
  cq.request_notify(false);
  EXPECT_TRUE(readable(channel.fd())) << "of the third one it was not told";
  EXPECT_EQ(cq.announced(), 2U);
}

// A program that waits inside polls behind its arming, and has no use for one more event.
TEST_F(CompletionQueueTest, AProgramThatWaitsInsideIsToldOfWhatComes) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  cq.request_notify(false);
  std::thread pusher{[&] {
    while (!channel.waits_inside()) std::this_thread::yield();
    push(cq, entry(1));
    push(cq, entry(2));
  }};
  ASSERT_TRUE(channel.next().ok());
  pusher.join();
  cq.request_notify(false);
  EXPECT_FALSE(readable(channel.fd()));
  EXPECT_EQ(drain(cq).size(), 2U);
  push(cq, entry(3));
  EXPECT_TRUE(readable(channel.fd())) << "it is armed";
}

// It takes one completion for each event.
TEST_F(CompletionQueueTest, AProgramThatWaitsInsideIsToldOfWhatItsPollLeft) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  cq.request_notify(false);
  std::thread pusher{[&] {
    while (!channel.waits_inside()) std::this_thread::yield();
    const Entry two[] = {entry(1), entry(2)};
    cq.push(two);
  }};
  ASSERT_TRUE(channel.next().ok());
  pusher.join();
  cq.request_notify(false);
  EXPECT_FALSE(readable(channel.fd()));
  Completion one[1];
  EXPECT_EQ(cq.pop(one), 1U);
  ASSERT_TRUE(readable(channel.fd()));
  EXPECT_EQ(cq.pop(one), 1U);
  ASSERT_TRUE(channel.next().ok());
  cq.request_notify(false);
  EXPECT_FALSE(readable(channel.fd()));
}

// It takes them one by one, as ibv_start_poll and ibv_next_poll do: what the first part leaves may
// be the second one's.
TEST_F(CompletionQueueTest, AProgramThatPollsInPartsIsToldOfWhatTheyLeft) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  cq.request_notify(false);
  std::thread pusher{[&] {
    while (!channel.waits_inside()) std::this_thread::yield();
    const Entry three[] = {entry(1), entry(2), entry(3)};
    cq.push(three);
  }};
  ASSERT_TRUE(channel.next().ok());
  pusher.join();
  cq.request_notify(false);
  Completion one[1];
  EXPECT_EQ(cq.poll(one, CompletionQueue::Poll::part), 1U);
  EXPECT_FALSE(readable(channel.fd())) << "it is polling";
  EXPECT_EQ(cq.pop(one, CompletionQueue::Poll::part), 1U);
  EXPECT_FALSE(readable(channel.fd())) << "it is polling";
  cq.announce_held_back();
  EXPECT_TRUE(readable(channel.fd())) << "it left one";

  ASSERT_TRUE(channel.next().ok());
  cq.request_notify(false);
  EXPECT_EQ(cq.pop(one, CompletionQueue::Poll::part), 1U);
  EXPECT_EQ(cq.pop(one, CompletionQueue::Poll::part), 0U);
  cq.announce_held_back();
  EXPECT_FALSE(readable(channel.fd())) << "it left none";
  push(cq, entry(4));
  EXPECT_TRUE(readable(channel.fd())) << "it is armed";
}

// It takes an event, arms and waits again, without a poll.
TEST_F(CompletionQueueTest, AProgramThatWaitsInsideAgainIsToldOfWhatItLeft) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  CompletionQueue other(context, 10, &channel, nullptr, false);
  cq.request_notify(false);
  std::thread pusher{[&] {
    while (!channel.waits_inside()) std::this_thread::yield();
    push(cq, entry(1));
    push(cq, entry(2));
    push(other, entry(3));
  }};
  ASSERT_TRUE(channel.next().ok());
  pusher.join();
  cq.request_notify(false);
  EXPECT_FALSE(readable(channel.fd())) << "it may poll";
  other.request_notify(false);
  ASSERT_TRUE(readable(channel.fd())) << "of the first, for one waits at a time";
  EXPECT_EQ(*channel.next(), &cq);
  EXPECT_EQ(fcntl(channel.fd(), F_SETFL, O_NONBLOCK), 0);  // where it would sleep it fails
  const auto next = channel.next();
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*next, &other);
}

TEST_F(CompletionQueueTest, AQueueThatIsDestroyedHoldsNothingBack) {
  std::optional<CompletionQueue> cq{std::in_place, context, 10, &channel, nullptr, false};
  cq->request_notify(false);
  std::thread pusher{[&] {
    while (!channel.waits_inside()) std::this_thread::yield();
    push(*cq, entry(1));
    push(*cq, entry(2));
  }};
  ASSERT_TRUE(channel.next().ok());
  pusher.join();
  cq->request_notify(false);
  cq.reset();
  EXPECT_EQ(fcntl(channel.fd(), F_SETFL, O_NONBLOCK), 0);
  const auto next = channel.next();
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.error(), EAGAIN);
}

TEST_F(CompletionQueueTest, ArmedForSolicitedOnes) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  cq.request_notify(true);
  push(cq, entry(1));
  EXPECT_FALSE(readable(channel.fd()));
  push(cq, entry(2, true));
  EXPECT_TRUE(readable(channel.fd()));
  ASSERT_TRUE(channel.next().ok());
  EXPECT_EQ(drain(cq).size(), 2U);
  cq.request_notify(true);
  push(cq, entry(3, false, Status::flushed));
  EXPECT_TRUE(readable(channel.fd())) << "or failed";
  ASSERT_TRUE(channel.next().ok());
}

TEST_F(CompletionQueueTest, ASolicitedOneThatIsNotPolledIsAnnounced) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  push(cq, entry(1));
  cq.request_notify(true);
  EXPECT_FALSE(readable(channel.fd()));
  EXPECT_EQ(drain(cq).size(), 1U);
  CompletionQueue other(context, 10, &channel, nullptr, false);
  push(other, entry(2, true));
  push(other, entry(3));
  other.request_notify(true);
  ASSERT_TRUE(readable(channel.fd())) << "it was not told of the solicited one";
  ASSERT_TRUE(channel.next().ok());
  Completion one[1];
  EXPECT_EQ(other.pop(one), 1U);
  other.request_notify(true);
  EXPECT_FALSE(readable(channel.fd())) << "what is left was not solicited";
}

TEST_F(CompletionQueueTest, ArmingForAllIsStronger) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  cq.request_notify(false);
  cq.request_notify(true);
  push(cq, entry(1));
  EXPECT_TRUE(readable(channel.fd()));
}

TEST_F(CompletionQueueTest, SeveralQueuesShareAChannel) {
  CompletionQueue a(context, 10, &channel, nullptr, false);
  CompletionQueue b(context, 10, &channel, nullptr, false);
  a.request_notify(false);
  b.request_notify(false);
  push(b, entry(1));
  push(a, entry(1));
  EXPECT_EQ(*channel.next(), &b);
  EXPECT_EQ(*channel.next(), &a);
}

TEST_F(CompletionQueueTest, ADestroyedQueueLeavesNoWord) {
  {
    CompletionQueue cq(context, 10, &channel, nullptr, false);
    cq.request_notify(false);
    push(cq, entry(1));
    EXPECT_TRUE(readable(channel.fd()));
  }
  EXPECT_FALSE(readable(channel.fd()));
}

TEST_F(CompletionQueueTest, ANonblockingChannelSaysEagain) {
  ASSERT_EQ(::fcntl(channel.fd(), F_SETFL, ::fcntl(channel.fd(), F_GETFL) | O_NONBLOCK), 0);
  const auto none = channel.next();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error(), EAGAIN);
}

TEST_F(CompletionQueueTest, ABlockingChannelWaits) {
  CompletionQueue cq(context, 10, &channel, nullptr, false);
  cq.request_notify(false);
  std::thread pusher([&] { push(cq, entry(1)); });
  const auto next = channel.next();
  pusher.join();
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*next, &cq);
}

TEST_F(CompletionQueueTest, WithoutChannelArmingIsNothing) {
  CompletionQueue cq(context, 10, nullptr, nullptr, false);
  cq.request_notify(false);
  push(cq, entry(1));
  EXPECT_EQ(drain(cq), std::vector<uint64_t>{1});
}

TEST_F(CompletionQueueTest, ManyThreadsPollEachCompletionOnce) {
  constexpr uint64_t kCount = 50'000;
  CompletionQueue cq(context, 64, nullptr, nullptr, false);
  std::atomic<uint64_t> taken{0};
  std::atomic<uint64_t> sum{0};
  std::vector<std::thread> pollers;
  for (int t = 0; t < 2; ++t) {
    pollers.emplace_back([&] {
      Completion c[5];
      while (taken.load() < kCount) {
        const size_t n = cq.pop(c);
        for (size_t i = 0; i < n; ++i) sum += c[i].wr_id;
        taken += n;
      }
    });
  }
  for (uint64_t i = 0; i < kCount; ++i) {
    while (i - taken.load() >= 60) std::this_thread::yield();
    push(cq, entry(i));
  }
  for (std::thread& t : pollers) t.join();
  EXPECT_EQ(sum.load(), kCount * (kCount - 1) / 2);
}

}  // namespace
}  // namespace weft::verbs
