#include "measure/machine_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/measure/fake_tree.h"

namespace weft::measure {
namespace {

using ::testing::HasSubstr;

constexpr const char* kBefore =
    "cpu  1000 200 300 5000 50 7 60 80 0 0\n"
    "cpu0 500 100 150 2500 25 3 30 40 0 0\n"
    "cpu1 500 100 150 2500 25 4 30 40 0 0\n"
    "intr 12345 0 9\n"
    "ctxt 900\n"
    "btime 1\n";

TEST(MachineCpu, TellsTheKindsOfTimeApart) {
  const auto cpu = parse_machine_cpu(kBefore, 100);
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->cpus, 2U);
  EXPECT_DOUBLE_EQ(cpu->user_s, 12);
  EXPECT_DOUBLE_EQ(cpu->system_s, 3);
  EXPECT_DOUBLE_EQ(cpu->idle_s, 50.5);
  EXPECT_DOUBLE_EQ(cpu->irq_s, 0.07);
  EXPECT_DOUBLE_EQ(cpu->softirq_s, 0.6);
  EXPECT_DOUBLE_EQ(cpu->steal_s, 0.8);
  EXPECT_DOUBLE_EQ(cpu->switches, 900);
  EXPECT_DOUBLE_EQ(cpu->busy_s(), 15.67);
}

TEST(MachineCpu, DifferenceIsWhatWasDoneBetween) {
  const auto before = parse_machine_cpu(kBefore, 100);
  const auto after = parse_machine_cpu(
      "cpu  1100 200 310 5000 50 7 85 83 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\n"
      "ctxt 950\n",
      100);
  ASSERT_TRUE(before);
  ASSERT_TRUE(after);
  const MachineCpu did = *after - *before;
  EXPECT_DOUBLE_EQ(did.user_s, 1);
  EXPECT_NEAR(did.softirq_s, 0.25, 1e-12);
  EXPECT_NEAR(did.steal_s, 0.03, 1e-12);
  EXPECT_DOUBLE_EQ(did.switches, 50);
  EXPECT_EQ(did.cpus, 2U);
}

TEST(MachineCpu, AShortLineIsNotTakenForZeros) {
  const auto cpu = parse_machine_cpu("cpu  1000 200 300 5000\n", 100);
  ASSERT_FALSE(cpu);
  EXPECT_THAT(cpu.error().reason, HasSubstr("eight times"));
}

TEST(MachineCpu, WithoutTheFileSaysSo) {
  const FakeTree proc;
  const auto cpu = read_machine_cpu(proc.root());
  ASSERT_FALSE(cpu);
  EXPECT_THAT(cpu.error().reason, HasSubstr("/stat: No such file"));
}

}  // namespace
}  // namespace weft::measure
