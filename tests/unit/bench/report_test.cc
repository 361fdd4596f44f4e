#include "bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/unit/bench/run_example.h"

namespace weft::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The line of `text` that begins with `begin` after its indentation, its runs of spaces made one.
std::string line_of(const std::string& text, const std::string& begin) {
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words{line};
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    if (joined.starts_with(begin)) return joined;
  }
  return "no line begins with " + begin;
}

TEST(AsText, SaysWhatWasMeasuredAndWhere) {
  const std::string text = as_text(example_run());
  EXPECT_THAT(text, HasSubstr("loopback, 3 repetitions of 0.500 s by turns, sides pinned"));
  EXPECT_EQ(line_of(text, "machine"), "machine a CPU, 2 CPUs, Linux 6.1");
  EXPECT_EQ(line_of(text, "load"), "load 0.25 before, 1.50 after");
  EXPECT_EQ(line_of(text, "raw TCP"), "raw TCP cubic; the host's default is bbr");
  EXPECT_EQ(line_of(text, "WEFT_SPIN"), "WEFT_SPIN=20");
}

TEST(AsText, SaysThatBothSidesShareACpu) {
  weft::bench::Run run = example_run();
  run.suite = Suite::chunk;
  run.one_core = true;
  const std::string text = as_text(run);
  EXPECT_THAT(text, HasSubstr("weft bench chunk: loopback"));
  EXPECT_THAT(text, HasSubstr("sides together on one CPU"));
  EXPECT_EQ(line_of(text, "raw TCP"), "raw TCP cubic; the host's default is bbr");
  // Both sides count, as in the table of RC.
  EXPECT_EQ(line_of(text, "write/1M/no-crc"),
            "write/1M/no-crc 49.5 38.0..80.0 0.990 0.110 0.110 0.220 1.10");
}

TEST(AsText, SaysOnceThatEnergyIsUnmeasured) {
  weft::bench::Run run = example_run();
  run.energy = fail(measure::Unmeasured{"powercap: no zone", "measure on the host"});
  const std::string text = as_text(run);
  EXPECT_EQ(line_of(text, "energy"), "energy unmeasured: powercap: no zone; measure on the host");
  EXPECT_THAT(text, Not(HasSubstr("Gb/s per W")));
}

TEST(AsText, HasATableOfEnergyWhereItIsMeasured) {
  weft::bench::Run run = example_run();
  run.energy = measure::SourceEnergy{.source = "powercap",
                                     .of = "package and DRAM",
                                     .joules = 1.0,
                                     .seconds = 1,
                                     .watts = 1.0,
                                     .domains = {}};
  for (CaseResult& c : run.cases) {
    for (Measurement& m : c.repetitions) m.machine.watts = 20;
  }
  const std::string text = as_text(run);
  EXPECT_EQ(line_of(text, "energy package"),
            "energy package and DRAM by powercap, of both sides together");
  EXPECT_EQ(line_of(text, "energy W"), "energy W Gb/s per W min..max of base J/GB");
  EXPECT_THAT(text, HasSubstr("2.00..4.00"));  // TCP at 40 to 80 Gb/s for 20 W
}

TEST(AsText, RowHasMedianSpreadAndRatios) {
  const std::string text = as_text(example_run());
  EXPECT_EQ(line_of(text, "tcp/1M"), "tcp/1M 50.0 40.0..80.0 - 0.100 0.100 0.200 -");
  EXPECT_EQ(line_of(text, "write/1M/no-crc"),
            "write/1M/no-crc 49.5 38.0..80.0 0.990 0.110 0.110 0.220 1.10");
}

TEST(AsText, ColumnsStandBelowEachOther) {
  std::istringstream in{as_text(example_run())};
  size_t width = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.find("Gb/s") != std::string::npos) width = line.size();
    if (line.find("/1M") != std::string::npos && line.find("..") != std::string::npos) {
      EXPECT_EQ(line.size(), width) << line;
    }
  }
  EXPECT_GT(width, 0U);
}

TEST(AsText, LeavesOutGroupsWithoutCases) {
  const std::string text = as_text(example_run());
  EXPECT_THAT(text, Not(HasSubstr("\n  message rate")));
  EXPECT_THAT(text, Not(HasSubstr("\n  round trip")));
  EXPECT_THAT(text, Not(HasSubstr("\n  at rest")));
}

TEST(AsText, TargetsSayWhetherTheyAreMet) {
  const std::string text = as_text(example_run());
  EXPECT_EQ(line_of(text, "Write 1 MB, CRC off / raw TCP 1 MB, bandwidth"),
            "Write 1 MB, CRC off / raw TCP 1 MB, bandwidth 0.990 0.950..1.00 >= 0.900 0.980 yes, "
            "and the aim");
  EXPECT_EQ(line_of(text, "Write 1 MB, CRC on / raw TCP 1 MB, CPU"),
            "Write 1 MB, CRC on / raw TCP 1 MB, CPU of both sides per byte 1.40 1.40..1.40 <= "
            "1.45 1.30 yes");
  EXPECT_EQ(line_of(text, "Writes of 64 B by post list"),
            "Writes of 64 B by post list, CRC on - - >= 8.00 15.0 not measured");
}

TEST(AsText, FailuresStandAtTheEnd) {
  auto run = example_run();
  run.cases[1].repetitions[2].error = "what arrived is not what was sent";
  EXPECT_THAT(as_text(run), ::testing::EndsWith("\nfailed: write/1M/crc, repetition 3: what "
                                                "arrived is not what was sent\n"));
}

TEST(AsText, CaseThatAlwaysFailedHasNoFigures) {
  auto run = example_run();
  for (Measurement& m : run.cases[1].repetitions) m.error = "broken";
  EXPECT_EQ(line_of(as_text(run), "write/1M/crc"), "write/1M/crc - - - - - - -");
}

TEST(AsJson, HasEachRepetitionAndTheSummary) {
  const auto json = as_json(example_run());
  EXPECT_EQ(json["benchmark"], "rc");
  EXPECT_EQ(json["machine"]["options"], (nlohmann::json{{"WEFT_SPIN", "20"}}));
  ASSERT_EQ(json["cases"].size(), 3U);
  const auto& write = json["cases"][1];
  EXPECT_EQ(write["name"], "write/1M/crc");
  EXPECT_EQ(write["operation"], "write");
  EXPECT_EQ(write["baseline"], "tcp/1M");
  ASSERT_EQ(write["repetitions"].size(), 3U);
  EXPECT_NEAR(write["repetitions"][1]["gbps"].get<double>(), 64, 1e-9);
  EXPECT_EQ(write["repetitions"][1]["messages"], 1000);
  EXPECT_NEAR(write["summary"]["gbps"]["median"].get<double>(), 45, 1e-9);
  EXPECT_NEAR(write["of_baseline"]["gbps"]["median"].get<double>(), 0.8, 1e-9);
  EXPECT_EQ(json["cases"][0]["of_baseline"], nlohmann::json::object());
  EXPECT_EQ(json["cases"][0]["repetitions"][0]["congestion"], "cubic");
}

TEST(AsJson, TargetWithoutAValueIsNull) {
  const auto json = as_json(example_run());
  const auto& targets = json["targets"];
  const auto rate = std::find_if(targets.begin(), targets.end(),
                                 [](const auto& t) { return t["id"] == "write_rate"; });
  ASSERT_NE(rate, targets.end());
  EXPECT_EQ((*rate)["value"], nullptr);
  EXPECT_EQ((*rate)["met"], nullptr);
  EXPECT_EQ((*rate)["required"], 8.0);
  EXPECT_EQ(targets[0]["met"], true);
  EXPECT_EQ(targets[0]["better"], "larger");
}

TEST(AsJson, FailedRepetitionIsItsSentence) {
  auto run = example_run();
  run.cases[1].repetitions[0].error = "broken";
  const auto json = as_json(run);
  EXPECT_EQ(json["cases"][1]["repetitions"][0], (nlohmann::json{{"error", "broken"}}));
  EXPECT_EQ(json["failures"].size(), 1U);
}

TEST(Failures, NameTheCaseAndTheRepetition) {
  auto cases = example_run().cases;
  EXPECT_THAT(failures(cases), IsEmpty());
  cases[0].repetitions[1].error = "no result within 60 s";
  EXPECT_THAT(failures(cases), ElementsAre("failed: tcp/1M, repetition 2: no result within 60 s"));
}

}  // namespace
}  // namespace weft::bench
