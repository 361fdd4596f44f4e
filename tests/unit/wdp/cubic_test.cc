#include "wdp/cubic.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::wdp {
namespace {

constexpr size_t kUnit = Congestion::kUnit;

struct CubicTest : ::testing::Test {
  // A window's worth comes; it was sent a round trip ago.
  void round(bool limited = true, Duration more = 0ms) {
    const size_t window = cubic.window();
    for (size_t left = window; left >= kUnit; left -= kUnit) {
      cubic.acknowledged(kUnit, now, limited, trip, trip + more, now + trip);
    }
    now = now + trip;
  }
  void lose() {
    cubic.congested(now, now + trip);
    now = now + trip + 1ns;
  }
  Cubic cubic;
  Duration trip = 20ms;
  Time now = Time::from_ns(1'000'000'000);
};

TEST_F(CubicTest, BeginsWith32DatagramsAndDoubles) {
  EXPECT_EQ(cubic.window(), 32 * kUnit);
  EXPECT_TRUE(cubic.in_slow_start());
  round();
  EXPECT_EQ(cubic.window(), 64 * kUnit);
  round();
  EXPECT_EQ(cubic.window(), 128 * kUnit);
}

// RFC 9002 7.8: an underused window does not grow.
TEST_F(CubicTest, DoesNotGrowUnused) {
  round(false);
  EXPECT_EQ(cubic.window(), 32 * kUnit);
}

// RFC 9406 4.2: a round trip that grows ends slow start before anything is lost.
TEST_F(CubicTest, AGrowingQueueEndsSlowStart) {
  round(true, 5ms);
  EXPECT_FALSE(cubic.in_slow_start());
  EXPECT_LT(cubic.window(), 40 * kUnit);
}

// RFC 9438 4.6: beta_cubic is 0.7.
TEST_F(CubicTest, LossTakesThreeTenths) {
  lose();
  EXPECT_EQ(cubic.window(), static_cast<size_t>(0.7 * 32 * kUnit));
  EXPECT_FALSE(cubic.in_slow_start());
}

// RFC 9002 7.3.2: one reduction for a period; what was sent before it counts no more.
TEST_F(CubicTest, LossesOfOnePeriodCountOnce) {
  const Time sent = now;
  cubic.congested(sent, now + trip);
  const size_t after = cubic.window();
  cubic.congested(sent + 1ms, now + trip + 1ms);
  EXPECT_EQ(cubic.window(), after);
  cubic.acknowledged(kUnit, sent + 2ms, true, trip, trip, now + trip + 2ms);
  EXPECT_EQ(cubic.window(), after) << "nor does it grow by them";
  cubic.congested(now + trip + 1ns, now + 2 * trip);
  EXPECT_LT(cubic.window(), after);
}

// RFC 9438 4.2: back to where the loss was in K = cbrt(W_max * 0.3 / 0.4) seconds, slowly there,
// and on.
TEST_F(CubicTest, FollowsTheCurve) {
  for (int i = 0; i < 5; ++i) round();  // 1024 units
  ASSERT_EQ(cubic.window(), 1024 * kUnit);
  lose();
  const double k = std::cbrt(1024 * 0.3 / 0.4);
  const Time since = now;
  while (now < since + std::chrono::milliseconds{static_cast<int>(k * 500)}) round();
  const auto half = static_cast<double>(cubic.window()) / kUnit;
  EXPECT_GT(half, 1024 - 0.3 * 1024 / 4) << "7/8 of the way after half of the time";
  EXPECT_LT(half, 1024);
  while (now < since + std::chrono::milliseconds{static_cast<int>(k * 1000)}) round();
  EXPECT_NEAR(static_cast<double>(cubic.window()) / kUnit, 1024, 20);
  while (now < since + std::chrono::milliseconds{static_cast<int>(k * 1500)}) round();
  EXPECT_GT(cubic.window(), 1050 * kUnit);
}

// RFC 9438 4.7: who loses below where it lost before makes room.
TEST_F(CubicTest, FastConvergence) {
  trip = 100ms;  // so that Reno is slower
  for (int i = 0; i < 5; ++i) round();
  lose();
  const size_t first = cubic.window();
  lose();
  EXPECT_EQ(cubic.window(), static_cast<size_t>(static_cast<double>(first) * 0.7));
  // The curve is flat at 0.85 of 716.8 units, not at 716.8.
  const double k = std::cbrt((0.85 * 716.8 - 501.76) / 0.4);
  const Time since = now;
  while (now < since + std::chrono::milliseconds{static_cast<int>(k * 1000)}) round();
  EXPECT_NEAR(static_cast<double>(cubic.window()) / kUnit, 0.85 * 716.8, 20);
}

// RFC 9002 7.6.2: "the sender's congestion window MUST be reduced to the minimum".
TEST_F(CubicTest, CollapsesToTwoDatagramsAndBeginsAnew) {
  cubic.collapsed(now);
  EXPECT_EQ(cubic.window(), 2 * kUnit);
  EXPECT_TRUE(cubic.in_slow_start());
}

TEST_F(CubicTest, NeverBelowTwoDatagrams) {
  for (int i = 0; i < 30; ++i) lose();
  EXPECT_EQ(cubic.window(), 2 * kUnit);
}

// RFC 9438 counts in segments. What limits a channel of large datagrams to so many of them at 1 %
// loss is what limits one of small ones.
TEST_F(CubicTest, ItsUnitIsTheDatagramOfTheChannel) {
  constexpr size_t kLarge = 38 * kUnit;
  // So many datagrams are under way on average while each hundredth is lost.
  const auto average = [&](size_t size) {
    double sum = 0;
    size_t rounds = 0;
    for (size_t sent = 0; sent < 100'000; ++rounds) {
      const size_t datagrams = std::max<size_t>(cubic.window() / size, 1);
      cubic.carried(size);
      const bool loses = sent / 100 != (sent + datagrams) / 100;
      for (size_t i = 0; i < datagrams; ++i) {
        cubic.acknowledged(size, now, true, trip, trip, now + trip);
      }
      if (loses) lose();
      now = now + trip;
      sent += datagrams;
      sum += static_cast<double>(datagrams);
    }
    return sum / static_cast<double>(rounds);
  };
  trip = 100us;
  const double large = average(kLarge);
  cubic = Cubic{};
  const double small = average(kUnit);
  EXPECT_NEAR(large, small, 2);
  EXPECT_GT(large, 8);
  EXPECT_LT(large, 20);
}

TEST_F(CubicTest, NeverBelowTwoDatagramsThatAreLarge) {
  cubic.carried(9000);
  for (int i = 0; i < 30; ++i) lose();
  EXPECT_EQ(cubic.window(), 2 * 9000U);
}

// spec/wdp-rd 5.4: "a window in 4/5 of a round trip, in half of one in slow start", from 1 ms on.
TEST_F(CubicTest, PacesAWindowOverARoundTrip) {
  const auto pause = [&](Duration round_trip) {
    return cubic.pause({.bytes = 1, .weight = cubic.window()}, round_trip);
  };
  EXPECT_EQ(pause(20ms), 10ms);
  lose();
  ASSERT_FALSE(cubic.in_slow_start());
  EXPECT_EQ(pause(20ms), 16ms);
  EXPECT_EQ(pause(1ms), 800us);
  EXPECT_EQ(pause(1ms - 1ns), 0ms);
}

}  // namespace
}  // namespace weft::wdp
