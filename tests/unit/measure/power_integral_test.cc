#include "measure/power_integral.h"

#include <gtest/gtest.h>

namespace weft::measure {
namespace {

TEST(PowerIntegral, IsTheTrapezoidsBetweenReadings) {
  PowerIntegral integral;
  integral.add(10, 4.0);
  integral.add(12, 8.0);    // 12 J
  integral.add(12.5, 8.0);  // 4 J
  integral.add(15.5, 2.0);  // 15 J
  EXPECT_DOUBLE_EQ(*integral.joules(), 31);
  EXPECT_DOUBLE_EQ(*integral.watts(), 2);
}

TEST(PowerIntegral, HoldsTheLastReadingWhereThereIsNoNewerOne) {
  PowerIntegral integral;
  integral.add(0, 10.0);
  integral.extend(0.5);
  EXPECT_DOUBLE_EQ(*integral.joules(), 5);
  integral.add(1, 20.0);
  EXPECT_DOUBLE_EQ(*integral.joules(), 15);
  integral.extend(3);
  EXPECT_DOUBLE_EQ(*integral.joules(), 55);
}

TEST(PowerIntegral, WithoutReadingsMeasuresNothing) {
  const PowerIntegral integral;
  EXPECT_FALSE(integral.joules());
  EXPECT_FALSE(integral.watts());
}

TEST(PowerIntegral, AGapLeavesNoSum) {
  const Unmeasured plugged{"BAT0 is being charged", "unplug it"};
  PowerIntegral integral;
  integral.add(0, 10.0);
  integral.add(1, fail(plugged));
  integral.add(2, 10.0);
  ASSERT_FALSE(integral.joules());
  EXPECT_EQ(integral.joules().error(), plugged);
  integral.reset();
  integral.add(2, 10.0);
  integral.add(3, 10.0);
  EXPECT_DOUBLE_EQ(*integral.joules(), 10);
}

TEST(PowerIntegral, NoPowerIsNoMeasurement) {
  PowerIntegral integral;
  integral.add(0, 0.0);
  integral.add(1, 0.0);
  EXPECT_FALSE(integral.watts());
  EXPECT_FALSE(integral.joules());
}

}  // namespace
}  // namespace weft::measure
