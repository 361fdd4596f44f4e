#include "verbs/event_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "tests/support/refused_calls.h"

namespace weft::verbs {
namespace {

bool readable(int fd) {
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 0) == 1;
}

TEST(EventFd, CountsDownByOne) {
  const EventFd e;
  ASSERT_TRUE(e.valid());
  EXPECT_FALSE(readable(e.fd()));
  e.signal();
  e.signal();
  e.take();
  EXPECT_TRUE(readable(e.fd()));
  e.take();
  EXPECT_FALSE(readable(e.fd()));
}

// As an adapter's: who waits for both directions sleeps until there is an event.
TEST(EventFd, IsNeverReadyForWriting) {
  const EventFd e;
  pollfd p{.fd = e.fd(), .events = POLLIN | POLLOUT, .revents = 0};
  EXPECT_EQ(::poll(&p, 1, 0), 0);
  e.signal();
  ASSERT_EQ(::poll(&p, 1, 0), 1);
  EXPECT_EQ(p.revents, POLLIN);
}

// More than a pipe has room for.
TEST(EventFd, HasRoomForAnyNumberOfUnits) {
  constexpr int kMany = 20'000;
  const EventFd e;
  for (int i = 0; i < kMany; ++i) e.signal();
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(readable(e.fd())) << i;
    e.take();
  }
  EXPECT_FALSE(readable(e.fd()));
}

// As a program may that does not know better.
TEST(EventFd, LivesOnWhenTheProgramClosesItsEnd) {
  const EventFd e;
  ASSERT_EQ(::close(e.fd()), 0);
  e.signal();
  e.take();
}

// As without /proc, where both ends cannot be had in one.
TEST(EventFd, NeedsNoProc) {
  bool refused = false;
  std::thread without{[&] {
    refused = test::refuse_call(SYS_openat, ENOENT);
    if (!refused) return;
    EventFd e;
    ASSERT_TRUE(e.valid());
    for (int i = 0; i < 20'000; ++i) e.signal();
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(readable(e.fd())) << i;
      e.take();
    }
    EXPECT_FALSE(readable(e.fd()));
    ASSERT_EQ(::fcntl(e.fd(), F_SETFL, O_NONBLOCK), 0);
    EXPECT_TRUE(e.nonblocking());
    e.signal();
    e.take();
    EXPECT_FALSE(readable(e.fd()));
    ASSERT_EQ(::close(e.fd()), 0);
    e.signal();
    e.take();
  }};
  without.join();
  if (!refused) GTEST_SKIP() << "no seccomp filters here";
}

TEST(EventFd, AWaiterMayBeExclusive) {
  const EventFd e;
  const port::Fd set{::epoll_create1(EPOLL_CLOEXEC)};
  epoll_event exclusive{};
  exclusive.events = EPOLLIN | EPOLLOUT | EPOLLEXCLUSIVE;
  EXPECT_EQ(::epoll_ctl(set.get(), EPOLL_CTL_ADD, e.fd(), &exclusive), 0);
  EXPECT_EQ(::epoll_wait(set.get(), &exclusive, 1, 0), 0);
  e.signal();
  EXPECT_EQ(::epoll_wait(set.get(), &exclusive, 1, 0), 1);
}

TEST(EventFd, AnEdgeIsToldOfEachUnit) {
  const EventFd e;
  const port::Fd set{::epoll_create1(EPOLL_CLOEXEC)};
  epoll_event edge{};
  edge.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(::epoll_ctl(set.get(), EPOLL_CTL_ADD, e.fd(), &edge), 0);
  const auto edges = [&] { return ::epoll_wait(set.get(), &edge, 1, 0); };
  EXPECT_EQ(edges(), 0);
  for (int i = 0; i < 3; ++i) {
    e.signal();
    EXPECT_EQ(edges(), 1) << i;
    EXPECT_EQ(edges(), 0) << i;
  }
}

TEST(EventFd, TheProgramDecidesWhetherItBlocks) {
  EventFd e;
  EXPECT_FALSE(e.nonblocking());
  ASSERT_EQ(::fcntl(e.fd(), F_SETFL, ::fcntl(e.fd(), F_GETFL) | O_NONBLOCK), 0);
  EXPECT_TRUE(e.nonblocking());
  e.close();
  EXPECT_FALSE(e.valid());
  EXPECT_FALSE(e.nonblocking());
}

TEST(EventQueue, OldestFirstAndReadableWhileThereIsOne) {
  EventQueue<int> q;
  EXPECT_TRUE(q.empty());
  EXPECT_FALSE(q.try_pop());
  for (int i = 1; i <= 3; ++i) q.push(i);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(readable(q.fd()));
    EXPECT_EQ(q.try_pop(), i);
  }
  EXPECT_FALSE(readable(q.fd()));
}

TEST(EventQueue, RemovedEventsAreNotReadable) {
  EventQueue<int> q;
  for (int i = 0; i < 6; ++i) q.push(i);
  q.remove_if([](int i) { return i % 2 == 0; });
  EXPECT_EQ(q.try_pop(), 1);
  q.remove_if([](int i) { return i == 5; });
  EXPECT_EQ(q.try_pop(), 3);
  EXPECT_TRUE(q.empty());
  EXPECT_FALSE(readable(q.fd()));
}

TEST(EventQueue, WhoTakesOneHearsOfItUnderTheLock) {
  EventQueue<int> q;
  q.push(7);
  int heard = 0;
  EXPECT_EQ(q.try_pop([&](int e) { heard = e; }), 7);
  EXPECT_EQ(heard, 7);
}

// Whoever announces holds locks, and the engine: a thread that is cancelled meanwhile goes on to
// the end, and leaves as many units as events.
TEST(EventQueue, ACanceledThreadLeavesItWhole) {
  EventQueue<int> q;
  std::atomic<bool> whole{false};
  std::thread t([&] {
    ::pthread_cancel(::pthread_self());
    q.push(1);
    q.push(2);
    EXPECT_EQ(q.try_pop(), 1);
    whole = true;
    ::pthread_testcancel();
    ADD_FAILURE() << "it was not cancelled";
  });
  t.join();
  EXPECT_TRUE(whole);
  EXPECT_TRUE(readable(q.fd()));
  EXPECT_EQ(q.try_pop(), 2);
  EXPECT_FALSE(readable(q.fd()));
}

class ManyTakers : public ::testing::TestWithParam<int> {};

// Whether the program has made the descriptor non-blocking or not: who takes an event before its
// unit is there waits for that.
TEST_P(ManyTakers, TakeEachEventOnceAndItsUnit) {
  constexpr int kEach = 3000;
  EventQueue<int> q;
  ASSERT_EQ(::fcntl(q.fd(), F_SETFL, ::fcntl(q.fd(), F_GETFL) | GetParam()), 0);
  std::vector<std::thread> threads;
  std::atomic<int> sum{0};
  std::atomic<int> taken{0};
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 1; i <= kEach; ++i) q.push(i);
    });
    threads.emplace_back([&] {
      while (taken.load() < 2 * kEach) {
        if (const auto e = q.try_pop()) {
          sum += *e;
          ++taken;
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sum.load(), 2 * (kEach * (kEach + 1) / 2));
  EXPECT_FALSE(readable(q.fd()));
}

INSTANTIATE_TEST_SUITE_P(EventQueue, ManyTakers, ::testing::Values(0, O_NONBLOCK));

TEST(EventQueue, OneOfAKindUntilItIsTaken) {
  EventQueue<int> q;
  EXPECT_TRUE(q.push_once(1));
  EXPECT_FALSE(q.push_once(1));
  EXPECT_TRUE(q.push_once(2));
  EXPECT_EQ(q.try_pop(), 1);
  EXPECT_TRUE(q.push_once(1));
  EXPECT_EQ(q.try_pop(), 2);
  EXPECT_EQ(q.try_pop(), 1);
  EXPECT_FALSE(readable(q.fd()));
}

}  // namespace
}  // namespace weft::verbs
