#include "measure/perf_power.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <map>

#include "tests/unit/measure/fake_tree.h"

namespace weft::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CpuList, HasRangesAndSingleOnes) {
  EXPECT_THAT(cpu_list("0"), ElementsAre(0));
  EXPECT_THAT(cpu_list("0,24-26,30"), ElementsAre(0, 24, 25, 26, 30));
  EXPECT_THAT(cpu_list(""), IsEmpty());
  EXPECT_THAT(cpu_list("0-"), IsEmpty());
  EXPECT_THAT(cpu_list("a"), IsEmpty());
}

TEST(EventConfig, HasEventAndMask) {
  EXPECT_EQ(*event_config("event=0x02"), 0x02U);
  EXPECT_EQ(*event_config("event=0x02,umask=0x7"), 0x702U);
  EXPECT_FALSE(event_config("event=two"));
  EXPECT_FALSE(event_config("event=0x02,edge=1"));
}

// The PMU of two sockets. Its counters are pipes: what a test puts in is what is read.
class PerfPowerTest : public ::testing::Test {
 protected:
  static constexpr double kScale = 2.3283064365386962890625e-10;
  PerfPowerTest() {
    write("type", "14");
    write("cpumask", "0,8");
    event("energy-pkg", "event=0x02");
    event("energy-ram", "event=0x03");
    proc_.write("cpuinfo", "flags\t\t: fpu");
  }
  void write(const std::string& file, const std::string& text) {
    sys_.write("bus/event_source/devices/power/" + file, text);
  }
  void event(const std::string& name, const std::string& config) {
    write("events/" + name, config);
    write("events/" + name + ".scale", "2.3283064365386962890625e-10");
    write("events/" + name + ".unit", "Joules");
  }
  OpenCounter pipes() {
    return [this](const PowerEvent& event, int cpu) {
      EXPECT_EQ(event.type, 14U);
      std::array<int, 2> ends{};
      EXPECT_EQ(pipe(ends.data()), 0);
      inputs_[{event.config, cpu}] = port::Fd{ends[1]};
      return port::Fd{ends[0]};
    };
  }
  void put(uint64_t config, int cpu, double joules) {
    const auto count = static_cast<uint64_t>(joules / kScale);
    ASSERT_EQ(::write(inputs_.at({config, cpu}).get(), &count, sizeof count),
              static_cast<ssize_t>(sizeof count));
  }

  FakeTree sys_;
  FakeTree proc_;
  FakeClock clock_;
  std::map<std::pair<uint64_t, int>, port::Fd> inputs_;
};

TEST_F(PerfPowerTest, ReadsWhatThePmuSaysOfItself) {
  const auto events = power_events(sys_.root(), proc_.root());
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 2U);
  const PowerEvent& package = events->front();
  EXPECT_EQ(package.name, "energy-pkg");
  EXPECT_EQ(package.part, Part::package);
  EXPECT_EQ(package.config, 2U);
  EXPECT_DOUBLE_EQ(package.joules, kScale);
  EXPECT_THAT(package.cpus, ElementsAre(0, 8));
  EXPECT_EQ(events->back().part, Part::dram);
}

TEST_F(PerfPowerTest, SumsTheSockets) {
  auto source = open_perf_power(sys_.root(), proc_.root(), pipes());
  ASSERT_TRUE(source);
  for (const uint64_t config : {2, 3}) {
    for (const int cpu : {0, 8}) put(config, cpu, 5);
  }
  (*source)->sample(clock_.function());
  clock_.now += 4;
  put(2, 0, 25);
  put(2, 8, 35);
  put(3, 0, 7);
  put(3, 8, 8);
  (*source)->sample(clock_.function());
  const Total total = total_of((*source)->domains());
  EXPECT_EQ(total.of, "package and DRAM");
  EXPECT_NEAR(*total.value, 20 + 30 + 2 + 3, 1e-6);
  EXPECT_NEAR(*(*source)->watts(), 55.0 / 4, 1e-6);
  EXPECT_EQ((*source)->domains().back().name, "energy-ram of package-1");
}

TEST_F(PerfPowerTest, SaysWhatAllowsIt) {
  const auto source =
      open_perf_power(sys_.root(), proc_.root(), [](const PowerEvent&, int) -> port::Fd {
        errno = EACCES;
        return {};
      });
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().reason, HasSubstr("energy-pkg on CPU 0: Permission denied"));
  EXPECT_THAT(source.error().remedy, HasSubstr("kernel.perf_event_paranoid=0"));
}

TEST_F(PerfPowerTest, WithoutThePmuNamesTheDriver) {
  sys_.remove("bus");
  const auto source = open_perf_power(sys_.root(), proc_.root(), pipes());
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().reason, HasSubstr("power/type: No such file"));
  EXPECT_THAT(source.error().remedy, HasSubstr("modprobe rapl"));
}

TEST_F(PerfPowerTest, ACounterThatEndsSaysSo) {
  auto source = open_perf_power(sys_.root(), proc_.root(), pipes());
  ASSERT_TRUE(source);
  inputs_.clear();
  (*source)->sample(clock_.function());
  const Total total = total_of((*source)->domains());
  ASSERT_FALSE(total.value);
  EXPECT_THAT(total.value.error().reason, HasSubstr("gives no count"));
}

}  // namespace
}  // namespace weft::measure
