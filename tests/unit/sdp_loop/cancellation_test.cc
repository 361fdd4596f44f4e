// A thread that is cancelled while it has a lock of the library's ends behind it.
#include "sdp/loop/cancellation.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <mutex>

#include "sdp/loop/handlers.h"

namespace weft::sdp {
namespace {

bool acts() {
  int state = PTHREAD_CANCEL_DISABLE;
  (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  (void)::pthread_setcancelstate(state, nullptr);
  return state == PTHREAD_CANCEL_ENABLE;
}

TEST(Cancellation, WaitsForTheLastLock) {
  Mutex first;
  Mutex second;
  {
    const std::lock_guard holding{first};
    { const std::lock_guard both{second}; }
    EXPECT_FALSE(acts());
  }
  EXPECT_TRUE(acts());
}

TEST(Cancellation, ActsWhereHandlersRun) {
  const HoldHandlers hold;
  EXPECT_FALSE(acts());
  {
    const LetHandlersRun meanwhile;
    EXPECT_TRUE(acts());
  }
  EXPECT_FALSE(acts());
}

TEST(Cancellation, StaysWhatTheProgramHasMadeIt) {
  Mutex mutex;
  {
    const HoldCancellation hold;
    { const std::lock_guard holding{mutex}; }
    EXPECT_FALSE(acts());
  }
  EXPECT_TRUE(acts());
}

}  // namespace
}  // namespace weft::sdp
