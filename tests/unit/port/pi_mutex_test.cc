#include "port/pi_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/scheduling.h"

namespace weft::port {
namespace {

TEST(PiMutex, TryLockFailsWhileItIsHeld) {
  PiMutex mutex;
  EXPECT_FALSE(mutex.held());
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_TRUE(mutex.held());
  bool got = true;
  std::thread{[&] { got = mutex.try_lock(); }}.join();
  EXPECT_FALSE(got);
  mutex.unlock();
  EXPECT_FALSE(mutex.held());
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(PiMutex, OneAtATime) {
  // More threads than processors: waiters sleep, and are woken up in turn.
  constexpr int kThreads = 8;
  constexpr uint64_t kTurns = 5000;
  PiMutex mutex;
  uint64_t counter = 0;
  uint64_t mirror = 0;
  uint64_t torn = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kTurns; ++i) {
        if (i % 7 == 0) {
          while (!mutex.try_lock()) std::this_thread::yield();
        } else {
          mutex.lock();
        }
        if (counter != mirror) ++torn;
        ++counter;
        ++mirror;
        mutex.unlock();
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(counter, kThreads * kTurns);
  EXPECT_EQ(torn, 0U);
}

TEST(PiMutex, AWaiterSleepsAndThenHasIt) {
  PiMutex mutex;
  mutex.lock();
  std::atomic<pid_t> id{0};
  std::atomic<bool> got{false};
  std::thread waiter([&] {
    id = test::this_thread_id();
    mutex.lock();
    got = true;
    mutex.unlock();
  });
  ASSERT_TRUE(test::comes_true([&] { return id != 0; }));
  EXPECT_TRUE(test::comes_true([&] { return test::sleeps(id); }));
  EXPECT_FALSE(got);
  mutex.unlock();
  waiter.join();
  EXPECT_TRUE(got);
  EXPECT_FALSE(mutex.held());
}

TEST(PiMutex, AWaiterLendsItsPriority) {
  if (!test::real_time_is_allowed()) GTEST_SKIP() << "no real-time priorities are allowed here";
  PiMutex mutex;
  mutex.lock();
  std::thread waiter([&] {
    ASSERT_TRUE(test::become_fifo(50));
    mutex.lock();
    mutex.unlock();
  });
  const pid_t holder = test::this_thread_id();
  EXPECT_TRUE(test::comes_true([&] { return test::has_real_time_priority(holder, 50); }));
  mutex.unlock();
  waiter.join();
  EXPECT_GE(test::effective_priority(holder), 0);
}

TEST(PiMutex, AChildHasANumberOfItsOwn) {
  ASSERT_EQ(thread_id(), static_cast<uint32_t>(test::this_thread_id()));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(thread_id() == static_cast<uint32_t>(test::this_thread_id()) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft::port
