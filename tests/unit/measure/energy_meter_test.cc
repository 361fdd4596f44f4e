#include "measure/energy_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/measure/fake_tree.h"

namespace weft::measure {
namespace {

using ::testing::HasSubstr;

class EnergyMeterTest : public ::testing::Test {
 protected:
  EnergyMeterTest() { proc_.write("cpuinfo", "flags\t\t: fpu"); }
  void have_package(uint64_t microjoules) {
    const std::string zone = "class/powercap/intel-rapl:0/";
    sys_.write(zone + "name", "package-0");
    sys_.write(zone + "max_energy_range_uj", "262143328850");
    sys_.write(zone + "energy_uj", std::to_string(microjoules));
  }
  void have_battery(uint64_t microwatts) {
    const std::string supply = "class/power_supply/BAT0/";
    sys_.write(supply + "type", "Battery");
    sys_.write(supply + "status", "Discharging");
    sys_.write(supply + "power_now", std::to_string(microwatts));
  }
  EnergyMeter meter(const std::vector<EnergyChoice>& choice) {
    return EnergyMeter{choice, {.sysfs = sys_.root(), .proc = proc_.root()}, clock_.function()};
  }

  FakeTree sys_;
  FakeTree proc_;
  FakeClock clock_;
};

TEST_F(EnergyMeterTest, PrefersTheProcessorsOwnCounters) {
  have_package(1'000'000);
  have_battery(9'000'000);
  EnergyMeter m = meter({EnergyChoice::first_quick});
  ASSERT_TRUE(m.readable());
  m.begin();
  clock_.now += 2;
  have_package(13'000'000);
  m.sample();
  const auto results = m.results();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].source, "powercap");
  EXPECT_EQ(results[0].of, "package");
  EXPECT_DOUBLE_EQ(*results[0].joules, 12);
  EXPECT_DOUBLE_EQ(*results[0].watts, 6);
  EXPECT_DOUBLE_EQ(*m.watts(), 6);
}

TEST_F(EnergyMeterTest, TakesTheBatteryWhereThereIsNoRaplAndSaysWhy) {
  have_battery(9'000'000);
  EnergyMeter m = meter({EnergyChoice::first_quick});
  m.begin();
  clock_.now += 4;
  m.sample();
  const auto results = m.results();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].source, "battery");
  EXPECT_DOUBLE_EQ(*results[0].watts, 9);
  EXPECT_EQ(results[1].source, "powercap");
  EXPECT_FALSE(results[1].watts);
  EXPECT_EQ(results[2].source, "perf");
  ASSERT_TRUE(best_of(results));
  EXPECT_EQ(best_of(results)->source, "battery");
}

TEST_F(EnergyMeterTest, ReadsAllThatAreNamed) {
  have_package(0);
  have_battery(9'000'000);
  EnergyMeter m = meter({EnergyChoice::powercap, EnergyChoice::battery});
  m.begin();
  clock_.now += 1;
  have_package(5'000'000);
  m.sample();
  const auto results = m.results();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_DOUBLE_EQ(*results[0].watts, 5);
  EXPECT_DOUBLE_EQ(*results[1].watts, 9);
}

TEST_F(EnergyMeterTest, EachMeasurementIsOfItsOwn) {
  have_package(0);
  EnergyMeter m = meter({EnergyChoice::powercap});
  m.begin();
  have_package(50'000'000);
  clock_.now += 1;
  m.sample();
  m.begin();
  have_package(53'000'000);
  clock_.now += 1;
  m.sample();
  EXPECT_DOUBLE_EQ(*m.results()[0].joules, 3);
}

TEST_F(EnergyMeterTest, WithNothingToReadNamesEachReason) {
  EnergyMeter m = meter({EnergyChoice::first_quick});
  EXPECT_FALSE(m.readable());
  m.begin();
  m.sample();
  EXPECT_FALSE(m.watts());
  const auto best = best_of(m.results());
  ASSERT_FALSE(best);
  for (const char* source : {"powercap: ", "; perf: ", "; battery: "}) {
    EXPECT_THAT(best.error().reason, HasSubstr(source));
  }
  EXPECT_THAT(best.error().remedy, HasSubstr("modprobe intel_rapl_msr"));
}

TEST(TotalOf, APlatformCounterIsNoMachineAndAloneLeavesNoTotal) {
  EXPECT_FALSE(total_of({{"psys", Part::platform, 5.0}}).value);
  EXPECT_FALSE(total_of({}).value);
}

}  // namespace
}  // namespace weft::measure
