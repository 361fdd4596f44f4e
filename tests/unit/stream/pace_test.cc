#include "stream/pace.h"

#include <gtest/gtest.h>

namespace weft::stream {
namespace {

TEST(PacketClock, DeadlinesAndWhatIsDueAgree) {
  const double rate = 200e6 / 1024 / 16;
  const PacketClock clock{rate,
                          -1'790'000'000'000'000'000};  // 1970, of a machine that just started
  for (int64_t now = 12'345'678; now < 900'000'000; now += 7'654'321) {
    const uint64_t n = clock.due_before(now);
    EXPECT_GT(clock.due_ns(n), now);
    EXPECT_LE(clock.due_ns(n - 1), now);
  }
}

TEST(PacketClock, HasNoDrift) {
  const double rate = 200e6 / 1024 / 16;
  const PacketClock clock{rate, 0};
  // 2 * 8192 s are 200000000 packets of 16 slices of 1024 samples at 200 MHz, exactly.
  EXPECT_EQ(clock.due_ns(200'000'000), 16'384'000'000'000);
  EXPECT_EQ(clock.due_ns(100), 8'192'000);
  EXPECT_EQ(clock.due_before(16'384'000'000'000), 200'000'001U);
}

TEST(PacketClock, CountsFromItsBase) {
  const PacketClock clock{10, 1'000'000'000, 5'000'000'000'000};
  EXPECT_EQ(clock.due_ns(5'000'000'000'000), 1'000'000'000);
  EXPECT_EQ(clock.due_ns(5'000'000'000'015), 2'500'000'000);
  EXPECT_EQ(clock.due_ns(4'999'999'999'990), 0);
  EXPECT_EQ(clock.due_before(2'499'999'999), 5'000'000'000'015U);
  EXPECT_EQ(clock.due_before(0), 5'000'000'000'000U);
}

TEST(PacketClock, BeforeItsOriginNothingIsDue) {
  const PacketClock clock{1000, 5'000'000};
  EXPECT_EQ(clock.due_before(4'999'999), 0U);
  EXPECT_EQ(clock.due_before(5'000'000), 1U);
  EXPECT_FALSE(PacketClock{}.paced());
}

TEST(Lateness, QuantilesAreNotBelowTheTruthAndClose) {
  Lateness lateness;
  for (int64_t us = 1; us <= 1000; ++us) lateness.add(us * 1000, 1);
  EXPECT_GE(lateness.quantile_us(0.5), 500);
  EXPECT_LE(lateness.quantile_us(0.5), 500 * 17.0 / 16 + 1);
  EXPECT_GE(lateness.quantile_us(0.99), 990);
  EXPECT_EQ(lateness.quantile_us(1), 1000);
  EXPECT_EQ(lateness.max_us(), 1000);
}

TEST(Lateness, CountsPacketsNotGroups) {
  Lateness lateness;
  lateness.add(5, 99);
  lateness.add(1'000'000, 1);
  EXPECT_EQ(lateness.quantile_us(0.99), 0.005);
  EXPECT_EQ(lateness.quantile_us(1), 1000);
  // A group that left before its deadline is not late.
  Lateness early;
  early.add(-3, 1);
  EXPECT_EQ(early.quantile_us(0.5), 0);
}

TEST(Lateness, OfNothing) {
  EXPECT_EQ(Lateness{}.quantile_us(0.5), 0);
}

TEST(OwnPace, EachStreamGoesByItsOwnClockFromWhereAllBegan) {
  OwnPace pace{2};
  pace.begin(1'000, 50'000);
  EXPECT_EQ(pace.due_ns(0, 1'000), 50'000);
  EXPECT_EQ(pace.due_ns(1, 1'700), 50'700);
  pace.begin_anew(1, 3, 60'000);
  EXPECT_EQ(pace.due_ns(1, 8), 60'005);
  EXPECT_EQ(pace.due_ns(0, 2'000), 51'000);
  pace.begin(5'000, 90'000);
  EXPECT_EQ(pace.due_ns(1, 5'001), 90'001);
}

}  // namespace
}  // namespace weft::stream
