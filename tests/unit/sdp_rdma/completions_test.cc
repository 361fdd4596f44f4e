// The queues that all connections share, over queues of this test's own.
#include "sdp/rdma/completions.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>

#include "tests/unit/sdp_rdma/fake_adapter.h"

namespace weft::sdp {
namespace {

using How = Completions::How;
using testing::FakeAdapter;
using testing::FakeQueue;

class Member final : public Completions::Member {
 public:
  ~Member() override = default;
  void on_mail() override {
    ++told;
    if (when_told) when_told();
  }
  Mailbox& mail() { return mail_; }
  std::vector<uint8_t> take_numbers() {
    std::vector<uint8_t> numbers;
    while (!mail_.empty()) numbers.push_back(mail_.take().number);
    return numbers;
  }

  ibv_cq* queue = nullptr;
  std::atomic<int> told{0};
  std::function<void()> when_told;
};

class SharedQueues : public ::testing::Test {
 protected:
  static constexpr uint32_t kEach = 160;

  void join(Member& member) {
    member.queue = completions.join(member, &adapter.device, kEach);
    ASSERT_NE(member.queue, nullptr);
  }
  void complete(const Member& member, uint8_t number, ibv_wc_status status = IBV_WC_SUCCESS) {
    ibv_wc wc{};
    wc.wr_id = Completions::work_id(member, 3, number);
    wc.status = status;
    wc.byte_len = 100U + number;
    ASSERT_TRUE(FakeAdapter::of(member.queue).complete(wc)) << "the queue overran";
  }
  int armed() const {
    int times = 0;
    for (const FakeQueue& queue : adapter.queues) times += queue.armed;
    return times;
  }
  // An event comes for one of so many threads that sleep, all because of this member.
  void wake_one_of(int sleepers, Member& member) {
    join(member);
    member.when_told = [&] { completions.shown(); };
    completions.want(sleepers);
    completions.rest();
    complete(member, 1);
    EXPECT_TRUE(completions.on_event());
  }

  FakeAdapter adapter;
  Completions completions{adapter};
};

TEST_F(SharedQueues, EachCompletionReachesItsMember) {
  Member one;
  Member other;
  join(one);
  join(other);
  EXPECT_EQ(one.queue, other.queue);
  complete(one, 1);
  complete(other, 2);
  complete(one, 3, IBV_WC_WR_FLUSH_ERR);
  completions.take(How::if_free);
  EXPECT_EQ(one.told, 1) << "once for all that came";
  EXPECT_EQ(other.told, 1);
  const Completed first = one.mail().take();
  EXPECT_EQ(first.work, 3);
  EXPECT_EQ(first.number, 1);
  EXPECT_EQ(first.bytes, 101U);
  EXPECT_TRUE(first.ok);
  EXPECT_FALSE(one.mail().take().ok);
  EXPECT_EQ(other.take_numbers(), std::vector<uint8_t>{2});
  completions.leave(one);
  completions.leave(other);
}

TEST_F(SharedQueues, WhoTakesForAllIsNotToldOfItsOwn) {
  Member self;
  Member other;
  join(self);
  join(other);
  complete(self, 1);
  complete(other, 2);
  completions.take(How::if_free, &self);
  EXPECT_EQ(self.told, 0);
  EXPECT_EQ(self.take_numbers(), std::vector<uint8_t>{1});
  EXPECT_EQ(other.told, 1);
  completions.leave(self);
  completions.leave(other);
}

TEST_F(SharedQueues, MoreThanOneBatchIsTakenAtOnce) {
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < 100; ++i) {
    members.push_back(std::make_unique<Member>());
    join(*members.back());
    complete(*members.back(), static_cast<uint8_t>(i));
  }
  completions.take(How::surely);
  for (uint8_t i = 0; i < 100; ++i) {
    EXPECT_EQ(members[i]->take_numbers(), std::vector<uint8_t>{i});
    completions.leave(*members[i]);
  }
}

TEST_F(SharedQueues, WithoutMembersThereIsNothingToLookFor) {
  Member one;
  Member other;
  EXPECT_FALSE(completions.any_members());
  join(one);
  join(other);
  completions.leave(one);
  EXPECT_TRUE(completions.any_members());
  completions.leave(other);
  EXPECT_FALSE(completions.any_members());
}

TEST_F(SharedQueues, ALateCompletionReachesNobody) {
  Member gone;
  join(gone);
  ibv_wc late{};
  late.wr_id = Completions::work_id(gone, 0, 7);
  completions.leave(gone);
  Member next;
  join(next);
  FakeAdapter::of(next.queue).completions.push_back(late);
  completions.take(How::surely);
  EXPECT_EQ(gone.told, 0);
  EXPECT_EQ(next.told, 0);
  EXPECT_TRUE(next.mail().empty());
  completions.leave(next);
}

// complete() fails where a queue has no room.
TEST_F(SharedQueues, ThereIsRoomForAllThatMembersMayHave) {
  for (const bool resizes : {true, false}) {
    adapter.resizes = resizes;
    std::vector<std::unique_ptr<Member>> members;
    for (int i = 0; i < 300; ++i) {
      members.push_back(std::make_unique<Member>());
      join(*members.back());
    }
    for (const auto& member : members) {
      for (uint32_t i = 0; i < kEach; ++i) complete(*member, static_cast<uint8_t>(i));
    }
    completions.take(How::surely);
    for (const auto& member : members) {
      EXPECT_EQ(member->take_numbers().size(), kEach);
      completions.leave(*member);
    }
  }
}

TEST_F(SharedQueues, AnAdapterWithSmallQueuesHasSeveral) {
  adapter.largest = 2 * kEach + 1;
  std::array<Member, 5> members;
  for (Member& member : members) join(member);
  EXPECT_EQ(adapter.queues.size(), 3U);
  for (Member& member : members) {
    for (uint32_t i = 0; i < kEach; ++i) complete(member, static_cast<uint8_t>(i));
  }
  completions.take(How::surely);
  for (Member& member : members) {
    EXPECT_EQ(member.take_numbers().size(), kEach);
    completions.leave(member);
  }
}

TEST_F(SharedQueues, RoomIsFreeAgainWhenItIsEmpty) {
  adapter.largest = 2 * kEach;
  adapter.resizes = false;
  Member stays;
  join(stays);
  for (int round = 0; round < 5; ++round) {
    Member comes;
    join(comes);
    ASSERT_EQ(adapter.queues.size(), 1U);
    for (uint32_t i = 0; i < kEach; ++i) {
      complete(comes, static_cast<uint8_t>(i));
      complete(stays, static_cast<uint8_t>(i));
    }
    completions.leave(comes);
    EXPECT_GE(stays.told, 1) << "what is taken on the way is not lost";
    EXPECT_EQ(stays.take_numbers().size(), kEach);
  }
  completions.leave(stays);
}

TEST_F(SharedQueues, AQueueThatBreaksTellsAllItsMembersOnce) {
  std::array<Member, 50> members;
  for (Member& member : members) join(member);
  FakeAdapter::of(members[0].queue).broken = true;
  completions.take(How::surely);
  completions.take(How::surely);
  for (Member& member : members) {
    ASSERT_FALSE(member.mail().empty());
    EXPECT_EQ(member.mail().take().work, Completions::kBroken);
    EXPECT_TRUE(member.mail().empty());
    EXPECT_EQ(member.told, 1);
  }
  Member next;
  join(next);
  EXPECT_NE(next.queue, members[0].queue);
  for (Member& member : members) completions.leave(member);
  completions.leave(next);
}

TEST_F(SharedQueues, ALookThatFailsOnceIsRepeated) {
  Member member;
  join(member);
  FakeQueue& queue = FakeAdapter::of(member.queue);
  queue.on_poll = [&, calls = 0]() mutable { queue.broken = ++calls == 1; };
  complete(member, 1);
  completions.take(How::surely);
  EXPECT_EQ(member.take_numbers(), std::vector<uint8_t>{1});
  completions.leave(member);
}

TEST_F(SharedQueues, WhoFindsAnotherThreadAtItIsToldSo) {
  Member member;
  join(member);
  complete(member, 1);
  std::atomic<bool> entered{false};
  std::atomic<bool> goes_on{false};
  FakeAdapter::of(member.queue).on_poll = [&] {
    entered = true;
    while (!goes_on) std::this_thread::yield();
  };
  std::thread other{[&] { completions.take(How::surely); }};
  while (!entered) std::this_thread::yield();
  EXPECT_FALSE(completions.take(How::to_the_end, &member));
  EXPECT_TRUE(member.mail().empty()) << "it is that thread's to hand out";
  goes_on = true;
  EXPECT_TRUE(completions.take(How::surely, &member));
  EXPECT_EQ(member.take_numbers(), std::vector<uint8_t>{1});
  other.join();
  completions.leave(member);
}

TEST_F(SharedQueues, ASignalHandlerOfTheThreadThatPollsDoesNotWaitForIt) {
  Member member;
  join(member);
  int calls = 0;
  FakeAdapter::of(member.queue).on_poll = [&] {
    if (++calls == 1) completions.take(How::surely);
  };
  completions.take(How::surely);
  EXPECT_EQ(calls, 1);
  completions.leave(member);
}

TEST_F(SharedQueues, AMemberLeavesOnlyWhenNobodyTellsIt) {
  Member member;
  join(member);
  std::atomic<bool> entered{false};
  std::atomic<bool> leaving{false};
  std::atomic<bool> told{false};
  member.when_told = [&] {
    entered = true;
    while (!leaving) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    told = true;
  };
  complete(member, 1);
  std::thread other{[&] { completions.take(How::surely); }};
  while (!entered) std::this_thread::yield();
  leaving = true;
  completions.leave(member);
  EXPECT_TRUE(told);
  other.join();
}

TEST_F(SharedQueues, WhoTakesForOthersReturnsThoughMoreComesAllTheTime) {
  constexpr int kEndless = 1000;
  Member self;
  Member other;
  join(self);
  join(other);
  int polls = 0;
  FakeAdapter::of(other.queue).on_poll = [&] {
    if (++polls > kEndless) return;
    for (uint8_t i = 0; i < 32; ++i) complete(other, i);
  };
  other.when_told = [&] { (void)other.take_numbers(); };
  completions.take(How::to_the_end, &self);
  EXPECT_LT(polls, 10);
  polls = 0;
  complete(self, 1);
  completions.take(How::to_the_end, &self);
  EXPECT_LT(polls, 3) << "it has mail of its own";
  EXPECT_EQ(self.take_numbers(), std::vector<uint8_t>{1});
  polls = 0;
  completions.take(How::surely, &self);
  EXPECT_LT(polls, kEndless);
  FakeAdapter::of(other.queue).on_poll = nullptr;
  completions.leave(self);
  completions.leave(other);
}

TEST_F(SharedQueues, TheCallKeepsItsErrno) {
  Member member;
  join(member);
  member.when_told = [] { errno = EAGAIN; };
  complete(member, 1);
  errno = EINTR;
  completions.take(How::if_free);
  EXPECT_EQ(errno, EINTR);
  complete(member, 2);
  { const Completions::Looking looking{completions, nullptr}; }
  EXPECT_EQ(member.told, 2);
  EXPECT_EQ(errno, EINTR);
  completions.leave(member);
}

TEST_F(SharedQueues, ACancelledThreadTellsToTheEnd) {
  Member member;
  join(member);
  std::atomic<bool> told{false};
  member.when_told = [&] {
    (void)::pthread_cancel(::pthread_self());
    ::pthread_testcancel();
    told = true;
  };
  complete(member, 1);
  const auto body = [](void* self) -> void* {
    static_cast<Completions*>(self)->take(How::if_free);
    ::pthread_testcancel();
    return self;
  };
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(&thread, nullptr, body, &completions), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_TRUE(told);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  completions.leave(member);
}

TEST_F(SharedQueues, AMemberLeavesThoughMoreComesForOthersAllTheTime) {
  constexpr int kEndless = 1000;
  Member leaves;
  Member other;
  join(leaves);
  join(other);
  int polls = 0;
  FakeAdapter::of(other.queue).on_poll = [&] {
    if (++polls > kEndless) return;
    for (uint8_t i = 0; i < 32; ++i) complete(other, i);
  };
  other.when_told = [&] { (void)other.take_numbers(); };
  completions.leave(leaves);
  EXPECT_LT(polls, kEndless);
  FakeAdapter::of(other.queue).on_poll = nullptr;
  completions.leave(other);
}

TEST_F(SharedQueues, ManyThreadsTakeForEachOther) {
  constexpr int kThreads = 4;
  constexpr uint32_t kCount = 2000;
  std::array<Member, kThreads> members;
  for (Member& member : members) join(member);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, &self = members[static_cast<size_t>(t)]] {
      for (uint32_t i = 0; i < kCount; ++i) {
        complete(self, static_cast<uint8_t>(i));
        while (self.mail().empty()) completions.take(How::if_free, &self);
        EXPECT_EQ(self.mail().take().number, static_cast<uint8_t>(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Member& member : members) completions.leave(member);
}

// --- who asks for events

TEST_F(SharedQueues, TheQueueIsArmedOnceForAllWhoRest) {
  Member member;
  join(member);
  EXPECT_TRUE(completions.rest());
  EXPECT_FALSE(completions.rest());
  EXPECT_EQ(armed(), 1);
  complete(member, 1);
  EXPECT_TRUE(completions.on_event()) << "somebody has to attend from now on";
  EXPECT_EQ(member.told, 1);
  EXPECT_EQ(armed(), 1) << "he looks in a moment";
  completions.leave(member);
}

TEST_F(SharedQueues, WhatCameBeforeTheQueueWasArmedIsTaken) {
  Member member;
  join(member);
  complete(member, 1);
  completions.rest();
  EXPECT_EQ(member.told, 1);
  completions.leave(member);
}

TEST_F(SharedQueues, WhoSleepsWhileItIsAttendedIsWokenByAnEvent) {
  Member member;
  join(member);
  completions.rest();
  (void)completions.on_event();
  completions.rest();
  EXPECT_EQ(armed(), 1) << "a program that calls takes completions itself";
  completions.want(1);
  completions.rest();
  EXPECT_EQ(armed(), 2);
  // It was not for the one that sleeps.
  (void)completions.on_event();
  EXPECT_EQ(armed(), 3);
  completions.want(-1);
  completions.leave(member);
}

TEST_F(SharedQueues, AnEventThatWakesSomebodyNeedsNoOther) {
  Member member;
  wake_one_of(1, member);
  EXPECT_EQ(armed(), 1);
  // Whom it woke has not called, and another one may sleep.
  EXPECT_FALSE(completions.attend());
  EXPECT_EQ(armed(), 2);
  completions.want(-1);
  completions.leave(member);
}

TEST_F(SharedQueues, AnEventThatWakesOneOfTwoIsFollowedByAnother) {
  Member member;
  wake_one_of(2, member);
  EXPECT_EQ(armed(), 2);
  completions.want(-2);
  completions.leave(member);
}

TEST_F(SharedQueues, SomebodyAttendsForAsLongAsTheProgramCalls) {
  Member member;
  join(member);
  completions.rest();
  EXPECT_TRUE(completions.on_event());
  completions.called();
  EXPECT_TRUE(completions.attend());
  EXPECT_FALSE(completions.on_event()) << "he does already";
  EXPECT_FALSE(completions.attend()) << "no call since";
  EXPECT_EQ(armed(), 2) << "from here on events tell of it";
  completions.leave(member);
}

TEST_F(SharedQueues, WhoAttendsTakesThoughTheProgramReadsWhatIsThereAlready) {
  Member member;
  join(member);
  completions.rest();
  EXPECT_TRUE(completions.on_event());
  completions.called();
  complete(member, 1);
  EXPECT_TRUE(completions.attend());
  EXPECT_EQ(member.told, 1);
  completions.leave(member);
}

TEST_F(SharedQueues, AThreadThatNeverComesBackFromItsLookDoesNotStopTheOthers) {
  Member member;
  join(member);
  completions.rest();
  EXPECT_TRUE(completions.on_event());
  const auto left = std::make_unique<Completions::Looking>(completions, nullptr);
  completions.want(1);
  completions.rest();
  for (int i = 0; i < 3; ++i) {
    complete(member, 1);
    EXPECT_TRUE(completions.attend());
    EXPECT_EQ(member.told, i + 1);
  }
  completions.want(-1);
  completions.leave(member);
}

sigjmp_buf g_before_the_look;

TEST_F(SharedQueues, AHandlerThatWouldJumpOutOfALookRunsBehindIt) {
  (void)Handlers::set(SIGUSR1, [](int) { siglongjmp(g_before_the_look, 1); });
  static volatile bool looked = false;
  if (sigsetjmp(g_before_the_look, 1) == 0) {
    const Completions::Looking looking{completions, nullptr};
    (void)::raise(SIGUSR1);
    looked = true;
  }
  (void)Handlers::set(SIGUSR1, SIG_DFL);
  EXPECT_TRUE(looked);
}

TEST_F(SharedQueues, NobodyIsTooManyWhileAThreadLooks) {
  Member member;
  join(member);
  {
    const Completions::Looking looking{completions, nullptr};
    completions.want(1);
    completions.rest();
    EXPECT_EQ(armed(), 0) << "who looks takes for those who sleep";
  }
  EXPECT_EQ(armed(), 1) << "they are not forgotten when he goes";
  completions.want(-1);
  completions.leave(member);
}

TEST_F(SharedQueues, AQueueThatIsAddedTells) {
  adapter.largest = kEach;
  Member one;
  join(one);
  completions.rest();
  Member other;
  join(other);
  ASSERT_NE(one.queue, other.queue);
  EXPECT_EQ(FakeAdapter::of(other.queue).armed, 1);
  completions.leave(one);
  completions.leave(other);
}

}  // namespace
}  // namespace weft::sdp
