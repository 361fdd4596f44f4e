#include "measure/battery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/measure/fake_tree.h"

namespace weft::measure {
namespace {

using ::testing::HasSubstr;

class BatteryTest : public ::testing::Test {
 protected:
  BatteryTest() {
    supply("AC", "type", "Mains");
    supply("AC", "online", "0");
    battery("BAT0", "Discharging");
    supply("BAT0", "power_now", "12500000");
  }
  void battery(const std::string& name, const std::string& status) {
    supply(name, "type", "Battery");
    supply(name, "status", status);
  }
  void supply(const std::string& name, const std::string& file, const std::string& text) {
    sys_.write("class/power_supply/" + name + "/" + file, text);
  }
  Measured<double> watts() { return battery_watts(sys_.root()); }

  FakeTree sys_;
  FakeClock clock_;
};

TEST_F(BatteryTest, SaysItsPower) {
  EXPECT_DOUBLE_EQ(*watts(), 12.5);
}

TEST_F(BatteryTest, OrCurrentAndVoltageWhicheverWayTheyAreCounted) {
  sys_.remove("class/power_supply/BAT0/power_now");
  supply("BAT0", "current_now", "-1500000");
  supply("BAT0", "voltage_now", "12000000");
  EXPECT_DOUBLE_EQ(*watts(), 18);
}

TEST_F(BatteryTest, TheDischargingOnesCountTogether) {
  battery("BAT1", "Discharging");
  supply("BAT1", "power_now", "2000000");
  battery("BAT2", "Not charging");
  supply("BAT2", "power_now", "99000000");
  EXPECT_DOUBLE_EQ(*watts(), 14.5);
}

TEST_F(BatteryTest, ThatOfAMouseDoesNot) {
  battery("hidpp_battery_0", "Discharging");
  supply("hidpp_battery_0", "scope", "Device");
  EXPECT_DOUBLE_EQ(*watts(), 12.5);
}

TEST_F(BatteryTest, SaysToUnplugWhenItIsCharged) {
  battery("BAT0", "Charging");
  ASSERT_FALSE(watts());
  EXPECT_THAT(watts().error().reason, HasSubstr("BAT0 is being charged"));
  EXPECT_THAT(watts().error().remedy, HasSubstr("unplug"));
  battery("BAT0", "Full");
  ASSERT_FALSE(watts());
  EXPECT_THAT(watts().error().reason, HasSubstr("BAT0 is 'Full', none is discharging"));
}

TEST_F(BatteryTest, SaysThatThereIsNone) {
  sys_.remove("class/power_supply/BAT0");
  ASSERT_FALSE(watts());
  EXPECT_THAT(watts().error().reason, HasSubstr("no battery"));
}

TEST_F(BatteryTest, SumsUpOverTime) {
  auto source = open_battery(sys_.root());
  ASSERT_TRUE(source);
  (*source)->sample(clock_.function());
  clock_.now += 3;
  supply("BAT0", "power_now", "17500000");
  (*source)->sample(clock_.function());
  const Total total = total_of((*source)->domains());
  EXPECT_EQ(total.of, "machine");
  EXPECT_DOUBLE_EQ(*total.value, 45);
  EXPECT_DOUBLE_EQ(*(*source)->watts(), 17.5);
}

TEST_F(BatteryTest, PluggedInBetweenLeavesNoSum) {
  auto source = open_battery(sys_.root());
  ASSERT_TRUE(source);
  (*source)->sample(clock_.function());
  battery("BAT0", "Charging");
  (*source)->sample(clock_.function());
  battery("BAT0", "Discharging");
  (*source)->sample(clock_.function());
  EXPECT_FALSE(total_of((*source)->domains()).value);
}

}  // namespace
}  // namespace weft::measure
