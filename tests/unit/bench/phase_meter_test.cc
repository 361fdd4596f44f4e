#include "bench/phase_meter.h"

#include <gtest/gtest.h>

#include "tests/unit/measure/fake_tree.h"

namespace weft::bench {
namespace {

void show(const measure::FakeTree& sys, uint64_t microjoules) {
  const std::string zone = "class/powercap/intel-rapl:0/";
  sys.write(zone + "name", "package-0");
  sys.write(zone + "max_energy_range_uj", "262143328850");
  sys.write(zone + "energy_uj", std::to_string(microjoules));
}

TEST(PhaseMeter, MeasuresBetweenBeginAndEnd) {
  const measure::FakeTree sys;
  show(sys, 1'000'000);
  PhaseMeter meter{{.sysfs = sys.root()}};
  EXPECT_FALSE(meter.wants_samples());
  show(sys, 900'000'000);
  meter.begin();
  EXPECT_TRUE(meter.wants_samples());
  show(sys, 905'000'000);
  const PhaseOnMachine phase = meter.end();
  EXPECT_FALSE(meter.wants_samples());
  ASSERT_TRUE(meter.energy());
  EXPECT_EQ(meter.energy()->of, "package");
  EXPECT_DOUBLE_EQ(*meter.energy()->joules, 5);
  ASSERT_TRUE(phase.watts);
  EXPECT_DOUBLE_EQ(*phase.watts, 5 / meter.energy()->seconds);
  EXPECT_TRUE(phase.softirq_s);
  EXPECT_TRUE(phase.steal_s);
}

TEST(PhaseMeter, AStandingCounterIsNoPower) {
  const measure::FakeTree sys;
  show(sys, 1'000'000);
  PhaseMeter meter{{.sysfs = sys.root()}};
  meter.begin();
  EXPECT_FALSE(meter.end().watts);
  EXPECT_FALSE(meter.energy());
}

TEST(PhaseMeter, AnEndWithoutABeginSaysNothing) {
  const measure::FakeTree sys;
  PhaseMeter meter{{.sysfs = sys.root()}};
  const PhaseOnMachine phase = meter.end();
  EXPECT_FALSE(phase.watts || phase.softirq_s || phase.steal_s);
}

}  // namespace
}  // namespace weft::bench
