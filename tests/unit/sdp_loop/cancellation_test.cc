// A thread that is cancelled while it has a lock of the library's ends behind it.
#include "sdp/loop/cancellation.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <mutex>

#include "sdp/loop/handlers.h"

namespace weft::sdp {
namespace {

struct Passed {
  bool inside = false;
  bool behind = false;
};

struct Work {
  void (*body)(Passed&);
  Passed passed;
};

void* run(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  (void)::pthread_cancel(::pthread_self());
  work.body(work.passed);
  return nullptr;
}

Passed cancelled_in(void (*body)(Passed&)) {
  Work work{.body = body, .passed = {}};
  pthread_t thread{};
  EXPECT_EQ(::pthread_create(&thread, nullptr, run, &work), 0);
  void* result = nullptr;
  EXPECT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  return work.passed;
}

void reach(bool& place) {
  ::pthread_testcancel();
  place = true;
}

Mutex g_first;
Mutex g_second;

TEST(Cancellation, WaitsForTheLastLock) {
  const Passed passed = cancelled_in([](Passed& p) {
    {
      const std::lock_guard first{g_first};
      { const std::lock_guard second{g_second}; }
      reach(p.inside);
    }
    reach(p.behind);
  });
  EXPECT_TRUE(passed.inside);
  EXPECT_FALSE(passed.behind);
  EXPECT_TRUE(g_first.try_lock());
  g_first.unlock();
}

TEST(Cancellation, ActsWhereHandlersRun) {
  const Passed passed = cancelled_in([](Passed& p) {
    const HoldHandlers hold;
    reach(p.inside);
    const LetHandlersRun meanwhile;
    reach(p.behind);
  });
  EXPECT_TRUE(passed.inside);
  EXPECT_FALSE(passed.behind);
}

TEST(Cancellation, IsHeld) {
  const Passed passed = cancelled_in([](Passed& p) {
    {
      const HoldCancellation hold;
      { const std::lock_guard lock{g_first}; }
      reach(p.inside);
    }
    reach(p.behind);
  });
  EXPECT_TRUE(passed.inside);
  EXPECT_FALSE(passed.behind);
}

}  // namespace
}  // namespace weft::sdp
