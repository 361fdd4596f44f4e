#include "stream/report.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

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
  // The report's thread writes it, last of all formats.
  void wait_for(const std::string& text) const {
    for (int i = 0; i < 20'000 && kept().find(text) == std::string::npos; ++i) ::usleep(1000);
    EXPECT_NE(kept().find(text), std::string::npos) << kept();
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

// Nobody reads while they are told.
TEST_F(StreamReport, CountsTheEventsThatItDrops) {
  constexpr uint64_t kEvents = 3000;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
  const int terminal = ::dup(STDOUT_FILENO);
  std::fflush(stdout);
  ASSERT_EQ(::dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
  ::close(ends[1]);
  std::vector<nlohmann::json> said;
  {
    auto json = options();
    json.json = true;
    Report report{json};
    for (uint64_t i = 0; i < kEvents; ++i) report.tell({{"event", "gap"}, {"from", i}});
    std::thread reader{[&said, &ends] {
      std::FILE* lines = ::fdopen(ends[0], "r");
      std::array<char, 4096> line{};
      while (std::fgets(line.data(), line.size(), lines) != nullptr) {
        said.push_back(nlohmann::json::parse(line.data()));
      }
      std::fclose(lines);
    }};
    report.show_last(snapshot(2, 1'000'000'000));
    ::dup2(terminal, STDOUT_FILENO);
    ::close(terminal);
    reader.join();
  }
  ASSERT_GT(said.size(), 1U);
  EXPECT_GT(said.back().at("events_dropped"), 0);
  EXPECT_EQ(said.back().at("events_dropped"), kEvents - (said.size() - 1));
}

// A stream with three quarters of the bytes of the last second has three quarters of what the
// second took, whatever there was before.
TEST_F(StreamReport, AStreamHasTheShareOfItsBytes) {
  for (const bool metered : {false, true}) {
    if (metered) taken(1'000'000);
    auto json = options();
    json.json = true;
    ::testing::internal::CaptureStdout();
    Report report{json};
    Snapshot first = snapshot(1, 800);
    report.show(first);
    wait_for("_cpu_seconds 0.200");  // else its reading of the meter may be that of `last`
    if (metered) taken(9'000'000);
    Snapshot last = snapshot(4, 1200);
    last.streams[0]["bytes"] = 400 + 300;
    last.streams[1]["bytes"] = 400 + 100;
    report.show(last);
    wait_for("_cpu_seconds 0.800");
    const std::string text = kept();
    report.show_last(last);
    std::istringstream said{::testing::internal::GetCapturedStdout()};
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(said, line);) lines.push_back(nlohmann::json::parse(line));
    ASSERT_EQ(lines.size(), 3U);
    const auto& second = lines[1];
    EXPECT_DOUBLE_EQ(second["cpu"], 0.2);
    EXPECT_DOUBLE_EQ(second["streams"][0]["cpu_share"], 0.15);
    EXPECT_DOUBLE_EQ(second["streams"][1]["cpu_share"], 0.05);
    const std::string name = "\nweft_stream_recv_cpu_share{stream=\"1\"} 0.05";
    EXPECT_NE(text.find(name), std::string::npos) << text;
    EXPECT_NE(text.find("# TYPE weft_stream_recv_cpu_share gauge\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("weft_stream_recv_watts_share{stream=\"1\"} ") != std::string::npos,
              metered)
        << text;
    // At the end of all.
    const auto& all = lines[2];
    EXPECT_DOUBLE_EQ(all["streams"][0]["cpu_share"], 0.2 * 7 / 12);
    if (metered) {
      const double watts = second["watts"];
      EXPECT_DOUBLE_EQ(second["streams"][0]["watts_share"], watts * 0.75);
      EXPECT_DOUBLE_EQ(second["streams"][1]["watts_share"], watts * 0.25);
      const double mean = all["energy"]["watts"];
      EXPECT_DOUBLE_EQ(all["streams"][1]["watts_share"], mean * 5 / 12);
    } else {
      EXPECT_TRUE(second["streams"][0]["watts_share"].is_null());
      EXPECT_TRUE(all["streams"][0]["watts_share"].is_null());
    }
  }
}

TEST_F(StreamReport, WhereNothingPassedNoStreamHasAShare) {
  auto json = options();
  json.json = true;
  ::testing::internal::CaptureStdout();
  Report{json}.show_last(snapshot(1, 0));
  const auto said = nlohmann::json::parse(::testing::internal::GetCapturedStdout());
  EXPECT_DOUBLE_EQ(said["cpu"], 0.2);
  EXPECT_DOUBLE_EQ(said["streams"][1]["cpu_share"], 0);
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
    EXPECT_NE(said.find("2.000 Gb/s  \n  CPU 20 %  "), std::string::npos) << said;
    EXPECT_NE(said.find("  10.0"), std::string::npos) << said;
    EXPECT_EQ(said.find("unmeasured"), std::string::npos) << said;
    EXPECT_EQ(said.find(" W\n") != std::string::npos, metered) << said;
    EXPECT_EQ(said.find("  10.0     - [") == std::string::npos, metered) << said;
  }
}

// Somebody else may write to the folder, and know the name.
TEST(WriteAtomically, FollowsNoLink) {
  std::string folder = ::testing::TempDir() + "weft-report-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto text = [&](const char* name) {
    std::stringstream all;
    all << std::ifstream(folder + name).rdbuf();
    return all.str();
  };
  std::ofstream(folder + "/victim") << "mine";
  ASSERT_EQ(::symlink((folder + "/victim").c_str(), (folder + "/counters.new").c_str()), 0);
  write_atomically(folder + "/counters", "packets 5\n");
  EXPECT_EQ(text("/counters"), "packets 5\n");
  write_atomically(folder + "/counters", "packets 6\n");
  EXPECT_EQ(text("/counters"), "packets 6\n");
  EXPECT_EQ(text("/victim"), "mine");
  std::filesystem::remove_all(folder);
}

TEST_F(StreamReport, TheLiveViewSaysWhatWentWrong) {
  auto live = options();
  live.live = true;
  const auto said_of = [&](uint64_t drops, uint64_t invalid) {
    Snapshot s = snapshot(1, 250'000'000);
    s.facts["kernel_drops"] = drops;
    s.streams[0]["invalid"] = invalid;
    s.streams[1]["invalid"] = invalid;
    ::testing::internal::CaptureStderr();
    Report{live}.show(s);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string said = said_of(7, 4);
  EXPECT_NE(said.find("  kernel_drops 7  invalid 8\n"), std::string::npos) << said;
  for (const char* name : {"kernel_drops", "invalid"}) {
    EXPECT_EQ(said_of(0, 0).find(name), std::string::npos) << name;
  }
}

TEST_F(StreamReport, TheTableStaysAtTheEnd) {
  auto live = options();
  live.live = true;
  ::testing::internal::CaptureStderr();
  {
    Report report{live};
    report.show(snapshot(1, 250'000'000));
    report.show_last(snapshot(2, 500'000'000));
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  const size_t last_erased = said.rfind("\x1b[J");
  ASSERT_NE(last_erased, std::string::npos) << said;
  EXPECT_NE(said.find("stream", last_erased), std::string::npos) << said;
  EXPECT_GT(said.find("0.500 GB in", last_erased), said.find("gap", last_erased)) << said;
}

TEST_F(StreamReport, WhyPowerIsUnmeasuredIsForThoseWhoAsk) {
  for (const bool asked : {false, true}) {
    auto wanted = options();
    if (asked) wanted.energy = {measure::EnergyChoice::powercap};
    wanted.roots.sysfs = "/nowhere";
    ::testing::internal::CaptureStderr();
    {
      Report report{wanted};
      report.show(snapshot(1, 1));
      report.show_last(snapshot(2, 2));
    }
    const std::string said = ::testing::internal::GetCapturedStderr();
    const size_t first = said.find("power unmeasured");
    EXPECT_EQ(first != std::string::npos, asked) << said;
    // Once.
    EXPECT_EQ(said.find("unmeasured"), said.rfind("unmeasured")) << said;
  }
}

}  // namespace
}  // namespace weft::stream
