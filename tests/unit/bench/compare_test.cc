#include "bench/compare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "kit/failure.h"

namespace weft::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

nlohmann::json line(const char* name, nlohmann::json figures) {
  return {{"schema", "weft-result/1"},
          {"kind", "repetition"},
          {"suite", "rc"},
          {"path", "loopback"},
          {"case", name},
          {"version", "1"},
          {"machine", {{"cpu", "a CPU"}, {"cpus", 2}, {"kernel", "6.1"}}},
          {"parameters", {{"mtu", nullptr}, {"offloads", "unchanged"}}},
          {"figures", std::move(figures)}};
}

Kept kept_of(const std::vector<nlohmann::json>& lines) {
  std::string text;
  for (const auto& l : lines) text += l.dump() + "\n";
  std::istringstream in{text};
  return read_results(in, "results");
}

// One case with these repetitions.
Kept rates(const char* figure, const std::vector<double>& values) {
  std::vector<nlohmann::json> lines;
  lines.reserve(values.size());
  for (const double value : values) lines.push_back(line("tcp/1M", {{figure, value}}));
  return kept_of(lines);
}

Comparison compare_one(const char* figure, const std::vector<double>& a,
                       const std::vector<double>& b, double least = 0) {
  const auto found = compare(rates(figure, a), rates(figure, b), {figure}, least);
  EXPECT_EQ(found.size(), 1U);
  return found.empty() ? Comparison{} : found.front();
}

std::string failure_of(const std::string& text) {
  std::istringstream in{text};
  try {
    (void)read_results(in, "results");
  } catch (const kit::Failure& failure) {
    return failure.what();
  }
  return "none";
}

TEST(ReadResults, OneCaseForEachOfPathSuiteNameMtuAndOffloads) {
  auto other = line("tcp/1M", {{"gbps", 5}});
  other["parameters"]["offloads"] = "off";
  other["parameters"]["mtu"] = 9000;
  const Kept kept = kept_of({line("tcp/1M", {{"gbps", 1}}), other, line("tcp/1M", {{"gbps", 3}})});
  ASSERT_EQ(kept.cases.size(), 2U);
  EXPECT_THAT(kept.cases.at("loopback rc tcp/1M").figures.at("gbps"), ElementsAre(1, 3));
  EXPECT_THAT(kept.cases.at("loopback rc tcp/1M mtu=9000 offloads=off").figures.at("gbps"),
              ElementsAre(5));
}

TEST(ReadResults, EachParameterThatIsNotAsUsualIsAPartOfTheCase) {
  const std::vector<std::pair<const char*, nlohmann::json>> chosen = {
      {"gbps", 2.5},      {"fault", "loss:0.1"}, {"loss", 0.1},     {"piece", 4096},
      {"wait", "poll"},   {"one_core", true},    {"pinned", false}, {"priority", true},
      {"mbps", 764},      {"packet_bytes", 64},  {"mtu", 9000},     {"packets_per_write", 16},
      {"offloads", "on"}, {"same_host", true},
  };
  for (const auto& [name, value] : chosen) {
    auto other = line("tcp/1M", {{"gbps", 5}});
    other["parameters"][name] = value;
    const Kept kept = kept_of({line("tcp/1M", {{"gbps", 1}}), other});
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    EXPECT_EQ(kept.cases.count(fmt::format("loopback rc tcp/1M {}={}", name, text)), 1U) << name;
    EXPECT_EQ(kept.cases.size(), 2U) << name;
  }
}

TEST(ReadResults, UsualParametersAreNone) {
  auto usual = line("tcp/1M", {{"gbps", 5}});
  usual["parameters"].update({{"gbps", 0.0},
                              {"loss", 0.0},
                              {"fault", ""},
                              {"piece", 0},
                              {"wait", "event"},
                              {"one_core", false},
                              {"pinned", true},
                              {"priority", false},
                              {"seconds", 3},
                              {"depth", 64}});
  EXPECT_EQ(kept_of({line("tcp/1M", {{"gbps", 1}}), usual}).cases.size(), 1U);
}

TEST(ReadResults, PassesOverALineThatIsCutOffAndSaysSo) {
  const std::string good = line("tcp/1M", {{"gbps", 5}}).dump();
  for (const size_t length : {size_t{1}, good.size() / 2, good.size() - 1}) {
    const std::string torn = good.substr(0, length);
    for (const std::string& text : {good + "\n" + torn, torn + "\n" + good + "\n"}) {
      std::istringstream in{text};
      const Kept kept = read_results(in, "results");
      EXPECT_THAT(kept.cases.at("loopback rc tcp/1M").figures.at("gbps"), ElementsAre(5));
      ASSERT_EQ(kept.notes.size(), 1U);
      EXPECT_THAT(kept.notes[0], HasSubstr(text.starts_with(good) ? "results:2" : "results:1"));
    }
  }
}

TEST(ReadResults, FailuresAreCountedAndHaveNoFigures) {
  auto broken = line("tcp/1M", {});
  broken.erase("figures");
  broken["error"] = "no result within 60 s";
  const Kept kept = kept_of({broken, line("tcp/1M", {{"gbps", 2}})});
  EXPECT_EQ(kept.cases.at("loopback rc tcp/1M").failed, 1U);
  EXPECT_EQ(kept.cases.at("loopback rc tcp/1M").figures.at("gbps").size(), 1U);
}

TEST(ReadResults, PassesOverLinesOfOtherKindsAndEmptyOnes) {
  EXPECT_THAT(kept_of({nlohmann::json{{"schema", "weft-result/1"}, {"kind", "sample"}}}).cases,
              IsEmpty());
  EXPECT_EQ(failure_of("\n \n"), "none");
}

TEST(ReadResults, NamesTheLineThatIsNone) {
  const std::string good = line("tcp/1M", {}).dump() + "\n";
  EXPECT_THAT(failure_of(good + "\"schema\": 1}"), HasSubstr("results:2: not a line"));
  EXPECT_THAT(failure_of("root:x:0:0\n"),
              EndsWith("results:1: not a line that 'weft bench --jsonl' wrote: it is no JSON"));
  EXPECT_THAT(
      failure_of("{}"),
      EndsWith("results:1: not a line that 'weft bench --jsonl' wrote: key 'schema' not found"));
  EXPECT_THAT(failure_of("[3]"), HasSubstr("results:1: not a line"));
  EXPECT_THAT(failure_of(good + good + R"({"schema": "weft-result/9", "kind": "repetition"})"),
              HasSubstr("results:3: is of the schema 'weft-result/9'"));
}

TEST(Compare, HasMediansRatioAndRanges) {
  const Comparison c = compare_one("gbps", {10, 12, 11}, {33, 20, 22, 23});
  EXPECT_EQ(c.key, "loopback rc tcp/1M");
  EXPECT_EQ(c.a, (Spread{.median = 11, .min = 10, .max = 12}));
  EXPECT_EQ(c.b, (Spread{.median = 22.5, .min = 20, .max = 33}));
  EXPECT_EQ(c.a_count, 3U);
  EXPECT_EQ(c.b_count, 4U);
  EXPECT_DOUBLE_EQ(c.ratio, 22.5 / 11);
}

TEST(Compare, IsTheSameWhereTheRangesTouch) {
  EXPECT_EQ(compare_one("gbps", {10, 12}, {12, 20}).verdict, Verdict::same);
  EXPECT_EQ(compare_one("gbps", {10, 30}, {15, 20}).verdict, Verdict::same);
}

TEST(Compare, BetterIsMoreOfGoodputAndLessOfCpu) {
  EXPECT_EQ(compare_one("gbps", {10, 12}, {12.5, 20}).verdict, Verdict::better);
  EXPECT_EQ(compare_one("gbps", {12.5, 20}, {10, 12}).verdict, Verdict::worse);
  EXPECT_EQ(compare_one("rx_s_per_gb", {10, 12}, {12.5, 20}).verdict, Verdict::worse);
  EXPECT_EQ(compare_one("rx_s_per_gb", {12.5, 20}, {10, 12}).verdict, Verdict::better);
  EXPECT_EQ(compare_one("gbps_per_w", {1, 1}, {2, 2}).verdict, Verdict::better);
  EXPECT_EQ(compare_one("rtt_us", {1, 1}, {2, 2}).verdict, Verdict::worse);
  for (const char* rate : {"connections_per_s", "beside_gbps", "of_beside", "least_of_mean"}) {
    EXPECT_EQ(compare_one(rate, {1, 1}, {2, 2}).verdict, Verdict::better) << rate;
  }
}

TEST(Compare, SmallDifferencesCountAsNoneWhenAsked) {
  EXPECT_EQ(compare_one("gbps", {100, 100}, {98, 98}, 0.03).verdict, Verdict::same);
  EXPECT_EQ(compare_one("gbps", {100, 100}, {96, 96}, 0.03).verdict, Verdict::worse);
}

TEST(Compare, OneRepetitionHasNoSpread) {
  EXPECT_EQ(compare_one("gbps", {10}, {20, 21}).verdict, Verdict::unknown);
  EXPECT_EQ(compare_one("gbps", {10, 11}, {20}).verdict, Verdict::unknown);
}

TEST(Compare, ARatioToNothingIsNone) {
  const Comparison c = compare_one("lost_percent", {0, 0}, {3, 3});
  EXPECT_EQ(c.ratio, 0);
  EXPECT_EQ(c.verdict, Verdict::worse);
  EXPECT_EQ(as_json({c})[0]["ratio"], nullptr);
}

TEST(Compare, TakesWhatBothHave) {
  const Kept a = kept_of({line("tcp/1M", {{"gbps", 1}, {"rtt_us", 1}}), line("a", {{"gbps", 1}})});
  const Kept b = kept_of({line("tcp/1M", {{"gbps", 1}}), line("b", {{"gbps", 1}})});
  const auto found = compare(a, b, usual_figures(), 0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].figure, "gbps");
  EXPECT_THAT(only_in(a, b), ElementsAre("loopback rc a"));
  EXPECT_THAT(only_in(b, a), ElementsAre("loopback rc b"));
}

TEST(Compare, KnowsWhatFailsInBAlone) {
  const auto good = line("tcp/1M", {{"gbps", 1}});
  auto bad = line("tcp/1M", {});
  bad.erase("figures");
  bad["error"] = "no result within 60 s";
  const auto broken = [](const std::vector<nlohmann::json>& a,
                         const std::vector<nlohmann::json>& b) {
    return !broken_in(kept_of(a), kept_of(b)).empty();
  };
  EXPECT_TRUE(broken({good, good}, {bad, bad}));
  EXPECT_TRUE(broken({good, good}, {good, bad}));
  EXPECT_TRUE(broken({good, bad}, {bad, bad}));
  EXPECT_FALSE(broken({good, bad}, {good, bad}));
  EXPECT_FALSE(broken({bad, bad}, {bad, bad}));
  EXPECT_FALSE(broken({bad, bad}, {good, good}));
  EXPECT_FALSE(broken({good, good}, {good, good}));
}

TEST(Compare, RefusesAFigureThatNobodyKnows) {
  EXPECT_THROW(compare_one("bytes_of_luck", {1, 1}, {2, 2}), kit::Failure);
}

TEST(Compare, RefusesAFigureThatNoLineHas) {
  const Kept a = rates("gbps", {1});
  const Kept b = rates("rtt_us", {1});
  require_figures(a, b, {"gbps", "rtt_us"});
  EXPECT_THROW(require_figures(a, b, {"gbps", "gpbs"}), kit::Failure);
}

TEST(CompareText, HasARowForEach) {
  const std::string text = as_text({compare_one("gbps", {10, 11, 12}, {22, 22, 23})});
  EXPECT_THAT(text, HasSubstr("loopback rc tcp/1M"));
  EXPECT_THAT(text, HasSubstr("11 (10..12)"));
  EXPECT_THAT(text, HasSubstr("22 (22..23)   2.000  better\n"));
}

TEST(CompareJson, HasBothSpreadsAndTheVerdict) {
  const auto json = as_json({compare_one("gbps", {10, 11, 12}, {22, 22, 23})})[0];
  EXPECT_EQ(json["a"],
            (nlohmann::json{{"median", 11}, {"min", 10}, {"max", 12}, {"repetitions", 3}}));
  EXPECT_EQ(json["ratio"], 2);
  EXPECT_EQ(json["verdict"], "better");
}

}  // namespace
}  // namespace weft::bench
