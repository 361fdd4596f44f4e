#include "measure/energy_counter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::measure {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRange = 262'143'328'850;  // microjoules, as most processors have it
constexpr double kMicro = 1e-6;

TEST(EnergyCounter, SumsWhatWasCountedSinceTheFirstReading) {
  EnergyCounter counter{kRange, kMicro};
  counter.add(10, 7'000'000U);
  counter.add(11, 19'000'000U);
  counter.add(13, 20'500'000U);
  EXPECT_DOUBLE_EQ(*counter.joules(), 13.5);
  EXPECT_DOUBLE_EQ(*counter.watts(), 0.75);
}

TEST(EnergyCounter, BeginsAnewAboveItsRange) {
  EnergyCounter counter{kRange, kMicro};
  counter.add(0, kRange - 2'000'000);
  counter.add(1, 3'000'000U);
  EXPECT_DOUBLE_EQ(*counter.joules(), 5);
  EXPECT_DOUBLE_EQ(*counter.watts(), 5);
}

TEST(EnergyCounter, BeginsAnewSeveralTimesInOneMeasurement) {
  constexpr uint64_t kSmall = 1'000'000;  // 1 J
  EnergyCounter counter{kSmall, kMicro};
  // 0.9 J in each step, 1000 steps, so it begins anew nearly each time.
  uint64_t shown = 123'456;
  counter.add(0, shown);
  for (int step = 1; step <= 1000; ++step) {
    shown = (shown + 900'000) % kSmall;
    counter.add(step * 0.0009, shown);
  }
  EXPECT_NEAR(*counter.joules(), 900, 1e-6);
}

TEST(EnergyCounter, IsNotGuessedWhereItMayHaveBegunAnewTwice) {
  EnergyCounter counter{kRange, kMicro};
  counter.add(0, 0U);
  counter.add(kRange * kMicro / EnergyCounter::kMostWatts - 1, 5'000'000U);
  ASSERT_TRUE(counter.joules());
  counter.add(2 * kRange * kMicro / EnergyCounter::kMostWatts, 6'000'000U);
  ASSERT_FALSE(counter.joules());
  EXPECT_THAT(counter.joules().error().reason, HasSubstr("may have begun anew twice"));
  EXPECT_THAT(counter.joules().error().remedy, HasSubstr("--interval"));
  // What is lost stays lost, up to the next measurement.
  counter.add(2 * kRange * kMicro / EnergyCounter::kMostWatts + 1, 7'000'000U);
  EXPECT_FALSE(counter.joules());
  counter.reset();
  counter.add(1000, 1'000'000U);
  counter.add(1001, 2'000'000U);
  EXPECT_DOUBLE_EQ(*counter.joules(), 1);
}

TEST(EnergyCounter, ThatStandsStillMeasuresNothing) {
  EnergyCounter counter{kRange, kMicro};
  counter.add(0, 5U);
  EXPECT_FALSE(counter.joules());
  counter.add(2, 5U);
  ASSERT_FALSE(counter.joules());
  EXPECT_THAT(counter.joules().error().reason, HasSubstr("stood still for 2 s"));
  EXPECT_FALSE(counter.watts());
}

TEST(EnergyCounter, KeepsTheReasonOfAFailedReading) {
  EnergyCounter counter{kRange, kMicro};
  const Unmeasured gone{"energy_uj: No such device", "load the driver"};
  counter.add(0, 0U);
  counter.add(1, 1'000'000U);
  counter.add(2, fail(gone));
  counter.add(3, 9'000'000U);
  ASSERT_FALSE(counter.joules());
  EXPECT_EQ(counter.joules().error(), gone);
  EXPECT_EQ(counter.watts().error(), gone);
}

TEST(EnergyCounter, WithoutARangeNeverBeginsAnew) {
  EnergyCounter counter{0, 0.25};
  counter.add(0, uint64_t{1} << 60U);
  counter.add(100'000, (uint64_t{1} << 60U) + 8);
  EXPECT_DOUBLE_EQ(*counter.joules(), 2);
  counter.add(100'001, 7U);
  EXPECT_FALSE(counter.joules());
}

}  // namespace
}  // namespace weft::measure
