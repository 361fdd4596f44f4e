#include "wdp/rd_goodbye.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::wdp {
namespace {

using Due = RdGoodbye::Due;
constexpr Time kStart = Time::from_ns(1'000'000'000);

TEST(RdGoodbye, WaitsASecondForWhatThePeerLacks) {
  RdGoodbye g;
  EXPECT_FALSE(g.waits());
  EXPECT_FALSE(g.is_late(kStart));
  g.wait(kStart);
  g.wait(kStart + 500ms);
  EXPECT_TRUE(g.waits());
  EXPECT_EQ(g.waits_until(), kStart + kLastMessages) << "from the first time on";
  EXPECT_FALSE(g.is_late(kStart + 999ms));
  EXPECT_TRUE(g.is_late(kStart + kLastMessages));
  (void)g.say(1ms, kStart + kLastMessages);
  EXPECT_FALSE(g.waits()) << "it is said";
}

// The pauses from one DREQ to the next, and how many were said.
std::vector<Duration> pauses(RdGoodbye& g, Duration pause, wire::DreqReason reason) {
  std::vector<Duration> all;
  Time now = kStart;
  for (uint8_t attempt = 0;; ++attempt) {
    const auto dreq = g.say(pause, now);
    EXPECT_EQ(dreq.attempt, attempt);
    EXPECT_EQ(dreq.reason, reason);
    EXPECT_EQ(g.tick(g.deadline() - 1ns), Due::nothing);
    all.push_back(g.deadline() - now);
    now = g.deadline();
    const Due due = g.tick(now);
    if (due == Due::over) return all;
    EXPECT_EQ(due, Due::again);
  }
}

TEST(RdGoodbye, IsSaidSixTimesInPausesThatDouble) {
  RdGoodbye g;
  EXPECT_EQ(pauses(g, 10ms, wire::DreqReason::none),
            (std::vector<Duration>{10ms, 20ms, 40ms, 80ms, 100ms, 100ms}));
  EXPECT_TRUE(g.deadline().is_never());
}

TEST(RdGoodbye, OfAnIdleChannelMoreOften) {
  RdGoodbye g;
  EXPECT_FALSE(g.takes_nothing());
  g.take_nothing();
  EXPECT_TRUE(g.takes_nothing());
  const auto all = pauses(g, 100ms, wire::DreqReason::idle);
  EXPECT_EQ(all.size(), 16U);
  EXPECT_EQ(all.back(), kMostProbePause);
}

TEST(RdGoodbye, StopsWithItsAnswer) {
  RdGoodbye g;
  (void)g.say(10ms, kStart);
  g.stop();
  EXPECT_TRUE(g.deadline().is_never());
  EXPECT_EQ(g.tick(kStart + 10s), Due::nothing);
}

}  // namespace
}  // namespace weft::wdp
