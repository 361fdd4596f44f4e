#include "stream/report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/unit/measure/fake_tree.h"

namespace weft::stream {
namespace {

using measure::FakeTree;

// A machine whose package has taken so much.
class StreamReport : public ::testing::Test {
 protected:
  void taken(uint64_t microjoules) {
    sys_.write("class/powercap/intel-rapl:0/name", "package-0");
    sys_.write("class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
    sys_.write("class/powercap/intel-rapl:0/energy_uj", std::to_string(microjoules));
    proc_.write("cpuinfo", "flags\t\t: fpu vme");
  }
  ReportOptions options() const {
    return {.json = false,
            .live = false,
            .prometheus = sys_.root() + "/weft.prom",
            .roots = {.sysfs = sys_.root(), .proc = proc_.root()}};
  }
  std::string kept() const {
    std::ostringstream text;
    text << std::ifstream{sys_.root() + "/weft.prom"}.rdbuf();
    return text.str();
  }
  static Snapshot snapshot(double seconds, uint64_t bytes) {
    return {.side = "recv",
            .seconds = seconds,
            .cpu_s = seconds / 5,
            .bytes = bytes,
            .facts = {{"transport", "uc"}},
            .streams = {{{"bytes", bytes / 2}}, {{"bytes", bytes - bytes / 2}}}};
  }

  FakeTree sys_;
  FakeTree proc_;
};

TEST_F(StreamReport, EnergyIsThatFromTheBeginToTheEnd) {
  taken(5'000'000);
  auto json = options();
  json.json = true;
  ::testing::internal::CaptureStdout();
  Report report{json};
  taken(35'500'000);
  report.show_last(snapshot(2, 1'000'000'000));
  const auto said = nlohmann::json::parse(::testing::internal::GetCapturedStdout());
  EXPECT_EQ(said.at("energy").at("source"), "powercap");
  EXPECT_EQ(said.at("energy").at("of"), "package");
  EXPECT_DOUBLE_EQ(said.at("energy").at("joules"), 30.5);
  EXPECT_DOUBLE_EQ(said.at("energy").at("gbps_per_w"), 8 / 30.5);
  EXPECT_GT(said.at("watts"), 0);
  EXPECT_NE(kept().find("\nweft_stream_recv_watts "), std::string::npos) << kept();
}

TEST_F(StreamReport, NoMeterIsSaidAndIsNotZero) {
  auto json = options();
  json.json = true;
  ::testing::internal::CaptureStdout();
  Report report{json};
  report.show_last(snapshot(2, 1'000'000'000));
  const auto said = nlohmann::json::parse(::testing::internal::GetCapturedStdout());
  EXPECT_TRUE(said.at("watts").is_null());
  EXPECT_FALSE(said.at("energy").at("unmeasured").get<std::string>().empty());
  EXPECT_FALSE(said.at("energy").contains("joules"));
  EXPECT_EQ(kept().find("watts"), std::string::npos);
  EXPECT_NE(kept().find("weft_stream_recv_cpu_seconds 0.400"), std::string::npos) << kept();
}

TEST_F(StreamReport, TheLiveViewHasTheShareOfAStream) {
  for (const bool metered : {false, true}) {
    if (metered) taken(1'000'000);
    auto live = options();
    live.live = true;
    ::testing::internal::CaptureStderr();
    {
      Report report{live};
      if (metered) taken(9'000'000);
      report.show(snapshot(1, 250'000'000));
    }
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("2.000 Gb/s  CPU 20 %  "), std::string::npos) << said;
    EXPECT_NE(said.find("a stream: 10.0 %"), std::string::npos) << said;
    EXPECT_EQ(said.find("power unmeasured") == std::string::npos, metered) << said;
    EXPECT_EQ(said.find(" W\n") != std::string::npos, metered) << said;
  }
}

}  // namespace
}  // namespace weft::stream
