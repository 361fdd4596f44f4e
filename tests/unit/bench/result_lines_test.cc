#include "bench/result_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "bench/compare.h"
#include "kit/failure.h"
#include "tests/unit/bench/run_example.h"

namespace weft::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Run run_to_keep() {
  Run run = example_run();
  run.suite = Suite::uc;
  run.path = "veth";
  run.version = "9.8.7";
  run.energy = fail(measure::Unmeasured{"no zone", "measure on the host"});
  return run;
}

nlohmann::json line_of(const Run& run, size_t which = 1, unsigned repetition = 0) {
  return result_line(run, run.cases[which].spec, repetition,
                     run.cases[which].repetitions[repetition], "2026-01-31T12:00:00Z");
}

// A file that is not there, and is gone afterwards.
class ScratchFile {
 public:
  ScratchFile()
      : path_(std::filesystem::temp_directory_path() /
              ("weft-result-lines-" + std::to_string(::getpid()) + ".jsonl")) {
    std::filesystem::remove(path_);
  }
  ~ScratchFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(UtcTime, IsReadable) {
  EXPECT_EQ(utc_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_time(1'700'000'000), "2023-11-14T22:13:20Z");
}

TEST(ResultLine, SaysWhatAndWhereAndWhen) {
  const auto line = line_of(run_to_keep(), 1, 2);
  EXPECT_EQ(line["schema"], "weft-result/1");
  EXPECT_EQ(line["kind"], "repetition");
  EXPECT_EQ(line["suite"], "uc");
  EXPECT_EQ(line["path"], "veth");
  EXPECT_EQ(line["case"], "write/1M/crc");
  EXPECT_EQ(line["repetition"], 2);
  EXPECT_EQ(line["time"], "2026-01-31T12:00:00Z");
  EXPECT_EQ(line["version"], "9.8.7");
  EXPECT_EQ(line["machine"]["cpu"], "a CPU");
  EXPECT_EQ(line["machine"]["options"], (nlohmann::json{{"WEFT_SPIN", "20"}}));
}

TEST(ResultLine, HasTheParametersOfTheCase) {
  bench::Run run = run_to_keep();
  run.mtu = 9000;
  run.offloads = Offloads::off;
  run.one_core = true;
  const auto parameters = line_of(run)["parameters"];
  EXPECT_EQ(parameters["operation"], "write");
  EXPECT_EQ(parameters["size"], 1'000'000);
  EXPECT_EQ(parameters["mtu"], 9000);
  EXPECT_EQ(parameters["offloads"], "off");
  EXPECT_EQ(parameters["one_core"], true);
  EXPECT_EQ(parameters["seconds"], 0.5);
  EXPECT_EQ(line_of(run_to_keep())["parameters"]["mtu"], nullptr);
}

TEST(ResultLine, HasFiguresAndTheCpuOfEachSide) {
  bench::Run run = run_to_keep();
  run.cases[1].repetitions[0].initiator.user_s = 0.04;
  run.cases[1].repetitions[0].target.system_s = 0.07;
  const auto line = line_of(run);
  EXPECT_NEAR(line["figures"]["gbps"].get<double>(), 30, 1e-9);
  EXPECT_EQ(line["messages"], 1000);
  EXPECT_DOUBLE_EQ(line["cpu"]["initiator"]["total_s"], 0.14);
  EXPECT_DOUBLE_EQ(line["cpu"]["initiator"]["user_s"], 0.04);
  EXPECT_DOUBLE_EQ(line["cpu"]["target"]["system_s"], 0.07);
}

TEST(ResultLine, EnergyIsMeasuredOrSaysWhyNot) {
  bench::Run run = run_to_keep();
  EXPECT_EQ(line_of(run)["energy"],
            (nlohmann::json{{"unmeasured", "no zone"}, {"remedy", "measure on the host"}}));
  run.energy = measure::SourceEnergy{.source = "powercap",
                                     .of = "package",
                                     .joules = 1.0,
                                     .seconds = 1,
                                     .watts = 1.0,
                                     .domains = {}};
  EXPECT_TRUE(line_of(run)["energy"].contains("unmeasured"));  // the meter has, this phase has not
  run.cases[1].repetitions[0].machine.watts = 12;
  const auto energy = line_of(run)["energy"];
  EXPECT_EQ(energy["source"], "powercap");
  EXPECT_EQ(energy["watts"], 12);
  EXPECT_NEAR(energy["joules"].get<double>(), 12 * 8.0 / 30, 1e-9);
}

TEST(ResultLine, OfAFailureIsItsSentence) {
  bench::Run run = run_to_keep();
  run.cases[1].repetitions[0].error = "broken";
  const auto line = line_of(run);
  EXPECT_EQ(line["error"], "broken");
  EXPECT_FALSE(line.contains("figures"));
}

TEST(ResultFile, AppendsAndIsReadAgain) {
  const ScratchFile scratch;
  const bench::Run run = run_to_keep();
  ResultFile{scratch.path()}.append(line_of(run, 1, 0));
  ResultFile again{scratch.path()};
  again.append(line_of(run, 1, 1));
  std::ifstream in{scratch.path()};  // while `again` is open
  const Kept kept = read_results(in, "file");
  ASSERT_TRUE(kept.cases.contains("veth uc write/1M/crc"));
  const auto& series = kept.cases.at("veth uc write/1M/crc").figures.at("gbps");
  ASSERT_EQ(series.size(), 2U);
  EXPECT_NEAR(series[0].value(), 30, 1e-9);
  EXPECT_NEAR(series[1].value(), 64, 1e-9);
  EXPECT_THAT(kept.versions, ElementsAre("9.8.7"));
  EXPECT_THAT(kept.machines, ElementsAre("a CPU, 2 CPUs, Linux 6.1"));
}

TEST(ResultFile, ThatCannotBeWrittenIsNamed) {
  try {
    const ResultFile file{"/nowhere/results.jsonl"};
    FAIL() << "opened";
  } catch (const kit::Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("/nowhere/results.jsonl"));
  }
}

TEST(ResultFile, ThatHoldsSomethingElseIsLeftAlone) {
  const auto refused = [](const std::string& text) {
    const ScratchFile scratch;
    std::ofstream{scratch.path()} << text;
    try {
      const ResultFile file{scratch.path()};
    } catch (const kit::Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr(scratch.path() + ": holds no results"));
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused("root:x:0:0:root\n"));
  EXPECT_TRUE(refused("{\"another\": \"document\"}\n"));
  EXPECT_TRUE(refused("[1, 2]\n"));
  EXPECT_FALSE(refused(""));
  EXPECT_FALSE(refused("{\"schema\": \"weft-result/1\"}\n"));
  // What a writer that was killed leaves of its first line.
  EXPECT_FALSE(refused("{\"case\": \"tcp/1M\", \"ki"));
}

}  // namespace
}  // namespace weft::bench
