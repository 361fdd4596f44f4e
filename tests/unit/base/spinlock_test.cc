#include "base/spinlock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/scheduling.h"

namespace weft {
namespace {

TEST(Spinlock, TryLockFailsWhileItIsHeld) {
  Spinlock lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(Spinlock, OneAtATime) {
  // More threads than processors: a waiter has to give up its turn for the holder to go on.
  constexpr int kThreads = 8;
  constexpr uint64_t kTurns = 20000;
  Spinlock lock;
  uint64_t counter = 0;
  uint64_t mirror = 0;
  uint64_t torn = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kTurns; ++i) {
        const std::lock_guard guard(lock);
        if (counter != mirror) ++torn;
        ++counter;
        ++mirror;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(counter, kThreads * kTurns);
  EXPECT_EQ(torn, 0U);
}

// A holder of an ordinary class does not run when a waiter with a real-time priority yields: the
// waiter has to sleep.
TEST(Spinlock, AWaiterSleepsAfterAWhile) {
  Spinlock lock;
  lock.lock();
  std::atomic<pid_t> id{0};
  std::thread waiter([&] {
    id = test::this_thread_id();
    lock.lock();
    lock.unlock();
  });
  ASSERT_TRUE(test::comes_true([&] { return id != 0; }));
  const long before = test::times_asleep(id);
  EXPECT_TRUE(test::comes_true([&] { return test::times_asleep(id) > before + 3; }));
  lock.unlock();
  waiter.join();
}

}  // namespace
}  // namespace weft
