#include "engine/watch.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include "engine/sockets.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;

struct WatchTest : ::testing::Test {
  static Watch::Fds fds_of(const Sockets& sockets) {
    return std::move(*Watch::make_fds(sockets.set().fd()));
  }
  stats::EngineCounters counters{};
  Sockets sockets{port::Fd{::epoll_create1(EPOLL_CLOEXEC)}, counters};
  Watch watch{fds_of(sockets), sockets, counters};
  // The timer does not ring while the test runs.
  const Time now = Time::from_ns(int64_t{1} << 60);
  uint64_t timer_calls() const { return counters.timer_calls.value(); }
  // The program has polled, and the sockets wake nobody, so that the timer stands for it.
  void polled() {
    epoll_event moved{};
    moved.data.u64 = 2;
    (void)watch.woken_by({&moved, 1}, now);
    watch.program_turn(now, watch.policy().patience());
  }
};

// Its own polls see to what is due. A timer for each deadline, as of acknowledgements that then go
// behind data, would take the processor from it some thousand times a second.
TEST_F(WatchTest, AProgramThatPollsIsNotDisturbedByDeadlines) {
  polled();
  ASSERT_EQ(timer_calls(), 1U);
  for (int i = 1; i <= 10; ++i) watch.due_at(now + i * 100us, false);
  EXPECT_EQ(timer_calls(), 1U) << "the helper comes anyway when the program has stopped";
}

TEST_F(WatchTest, OneThatMayBeAboutToSleepHasTheHelperInTime) {
  polled();
  watch.due_at(now + 100us, true);
  EXPECT_EQ(timer_calls(), 2U);
}

TEST_F(WatchTest, OneThatHasBeenAwayHasTheHelperInTime) {
  polled();
  watch.due_at(now + 2 * watch.policy().patience(), false);
  EXPECT_EQ(timer_calls(), 1U) << "the earlier time stands";
  watch.policy().took_over(true);
  watch.due_at(now + 100us, false);
  EXPECT_EQ(timer_calls(), 2U);
}

}  // namespace
}  // namespace weft::engine
