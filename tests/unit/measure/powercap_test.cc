#include "measure/powercap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/unit/measure/fake_tree.h"

namespace weft::measure {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRange = 262'143'328'850;
constexpr uint64_t kDramRange = 65'712'999'613;

// Two sockets, each with cores and DRAM.
class PowercapTest : public ::testing::Test {
 protected:
  PowercapTest() {
    for (const std::string socket : {"0", "1"}) {
      zone("intel-rapl:" + socket, "package-" + socket, kRange);
      zone("intel-rapl:" + socket + ":0", "core", kRange);
      zone("intel-rapl:" + socket + ":1", "dram", kDramRange);
    }
    // What stands beside the zones: the control itself, and the same package by another way.
    sys_.write("class/powercap/intel-rapl/enabled", "1");
    zone("intel-rapl-mmio:0", "package-0", kRange);
    // Of a guest or not, /proc/cpuinfo tells.
    proc_.write("cpuinfo", "flags\t\t: fpu vme");
  }
  void zone(const std::string& folder, const std::string& name, uint64_t range) {
    sys_.write("class/powercap/" + folder + "/name", name);
    sys_.write("class/powercap/" + folder + "/max_energy_range_uj", std::to_string(range));
    set(folder, 0);
  }
  void set(const std::string& folder, uint64_t microjoules) {
    sys_.write(energy(folder), std::to_string(microjoules));
  }
  static std::string energy(const std::string& folder) {
    return "class/powercap/" + folder + "/energy_uj";
  }
  OpenSource open() { return open_powercap(sys_.root(), proc_.root()); }
  static std::map<std::string, double> joules(const EnergySource& source) {
    std::map<std::string, double> found;
    for (const DomainEnergy& domain : source.domains()) {
      found[domain.name] = domain.joules ? *domain.joules : -1;
    }
    return found;
  }

  FakeTree sys_;
  FakeTree proc_;
  FakeClock clock_;
};

TEST_F(PowercapTest, TellsPackagesCoresAndDramApart) {
  auto source = open();
  ASSERT_TRUE(source);
  (*source)->sample(clock_.function());
  clock_.now += 2;
  set("intel-rapl:0", 30'000'000);
  set("intel-rapl:0:0", 11'000'000);
  set("intel-rapl:0:1", 4'000'000);
  set("intel-rapl:1", 20'000'000);
  set("intel-rapl:1:0", 7'000'000);
  set("intel-rapl:1:1", 2'000'000);
  set("intel-rapl-mmio:0", 30'000'000);
  (*source)->sample(clock_.function());
  EXPECT_EQ(joules(**source), (std::map<std::string, double>{{"package-0", 30},
                                                             {"core of package-0", 11},
                                                             {"dram of package-0", 4},
                                                             {"package-1", 20},
                                                             {"core of package-1", 7},
                                                             {"dram of package-1", 2}}));
  const Total total = total_of((*source)->domains());
  EXPECT_EQ(total.of, "package and DRAM");
  EXPECT_DOUBLE_EQ(*total.value, 56);  // the cores are in their package
  EXPECT_DOUBLE_EQ(*(*source)->watts(), 28);
}

TEST_F(PowercapTest, EachDomainBeginsAnewAtItsOwnRange) {
  set("intel-rapl:0", kRange - 1'000'000);
  set("intel-rapl:0:1", kDramRange - 500'000);
  set("intel-rapl:1", 5'000'000);
  auto source = open();
  ASSERT_TRUE(source);
  (*source)->sample(clock_.function());
  clock_.now += 1;
  set("intel-rapl:0", 1'000'000);
  set("intel-rapl:0:1", 250'000);
  set("intel-rapl:1", 6'000'000);
  (*source)->sample(clock_.function());
  const auto found = joules(**source);
  EXPECT_DOUBLE_EQ(found.at("package-0"), 2);
  EXPECT_DOUBLE_EQ(found.at("dram of package-0"), 0.75);
  EXPECT_DOUBLE_EQ(found.at("package-1"), 1);
}

TEST_F(PowercapTest, ADramThatStandsStillIsLeftOutOfTheTotalAndNotTakenFor0) {
  auto source = open();
  ASSERT_TRUE(source);
  (*source)->sample(clock_.function());
  clock_.now += 1;
  set("intel-rapl:0", 10'000'000);
  set("intel-rapl:1", 10'000'000);
  set("intel-rapl:0:1", 1'000'000);  // the other one does not move
  (*source)->sample(clock_.function());
  const Total total = total_of((*source)->domains());
  EXPECT_EQ(total.of, "package");
  EXPECT_DOUBLE_EQ(*total.value, 20);
}

TEST_F(PowercapTest, APackageThatGoesAwayLeavesNoTotal) {
  auto source = open();
  ASSERT_TRUE(source);
  (*source)->sample(clock_.function());
  set("intel-rapl:0", 10'000'000);
  sys_.remove(energy("intel-rapl:1"));
  (*source)->sample(clock_.function());
  const Total total = total_of((*source)->domains());
  ASSERT_FALSE(total.value);
  EXPECT_THAT(total.value.error().reason, HasSubstr("intel-rapl:1/energy_uj: No such file"));
}

TEST_F(PowercapTest, CountsAnewAfterReset) {
  auto source = open();
  ASSERT_TRUE(source);
  (*source)->sample(clock_.function());
  set("intel-rapl:0", 10'000'000);
  (*source)->sample(clock_.function());
  (*source)->reset();
  (*source)->sample(clock_.function());
  set("intel-rapl:0", 13'000'000);
  (*source)->sample(clock_.function());
  EXPECT_DOUBLE_EQ(joules(**source).at("package-0"), 3);
}

// Root may read every file; so this is somebody else as long as it is there.
class AsNobody {
 public:
  AsNobody() {
    if (root_ && seteuid(65534) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    if (root_ && seteuid(0) != 0) std::abort();
  }

 private:
  bool root_ = geteuid() == 0;
};

TEST_F(PowercapTest, SaysWhoMayReadWhatIsForbidden) {
  using std::filesystem::perms;
  std::filesystem::permissions(sys_.root(), perms::all);
  for (const char* package : {"intel-rapl:0", "intel-rapl:1"}) {
    std::filesystem::permissions(sys_.root() + "/" + energy(package), perms::none);
  }
  const AsNobody nobody;
  const auto source = open();
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().reason, HasSubstr("energy_uj: Permission denied"));
  EXPECT_THAT(source.error().remedy, HasSubstr("run as root"));
}

TEST_F(PowercapTest, OnePackageThatCannotBeReadLeavesNoTotal) {
  sys_.write(energy("intel-rapl:1"), "on");
  auto source = open();
  ASSERT_TRUE(source);
  (*source)->sample(clock_.function());
  set("intel-rapl:0", 10'000'000);
  (*source)->sample(clock_.function());
  EXPECT_DOUBLE_EQ(joules(**source).at("package-0"), 10);
  const Total total = total_of((*source)->domains());
  ASSERT_FALSE(total.value);
  EXPECT_THAT(total.value.error().reason, HasSubstr("intel-rapl:1/energy_uj holds no number"));
}

TEST_F(PowercapTest, WithoutZonesNamesTheDriver) {
  sys_.remove("class/powercap");
  const auto source = open();
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().reason, HasSubstr("has no zone intel-rapl"));
  EXPECT_THAT(source.error().remedy, HasSubstr("modprobe intel_rapl_msr"));
}

TEST_F(PowercapTest, InAGuestSendsToTheHost) {
  sys_.remove("class/powercap");
  proc_.write("cpuinfo", "flags\t\t: fpu hypervisor lahf_lm");
  const auto source = open();
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().reason, HasSubstr("this is a guest"));
  EXPECT_THAT(source.error().remedy, HasSubstr("on the host"));
}

}  // namespace
}  // namespace weft::measure
