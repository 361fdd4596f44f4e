// What `weft stat` prints. The values are made up; their rows are those of the table.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "weft/stat.h"

namespace weft::tools {
namespace {

using observe::Snapshot;
using stats::Scope;
using ::testing::HasSubstr;
using ::testing::Not;
using Numbers = std::map<std::string, uint64_t>;

std::vector<uint64_t> values(Scope scope, const Numbers& numbers) {
  std::vector<uint64_t> all(stats::row_count(scope));
  size_t found = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto n = numbers.find(stats::table()[i].name());
    if (n == numbers.end()) continue;
    all[i] = n->second;
    ++found;
  }
  EXPECT_EQ(found, numbers.size()) << "a name that is no counter's";
  return all;
}

// One engine, one queue pair that was told of a damaged FPDU.
CountingProcess one() {
  CountingProcess p{.pid = 4711, .program = "rping", .counters = {}};
  Snapshot& s = p.counters;
  s.started_ns = 1'700'000'000'500'000'000;
  const Numbers of_pair{{"messages_sent.write", 3}, {"fpdus_sent", UINT64_MAX}};
  Numbers of_engine = of_pair;
  of_engine["polls"] = 17;
  Numbers of_device = of_engine;
  of_device["ports_opened"] = 1;
  s.device = values(Scope::device, of_device);
  s.engines = {values(Scope::engine, of_engine)};
  s.queue_pairs = {{.qpn = 0x0c0101,
                    .engine = 0,
                    .last_terminate =
                        stats::LastTerminate{.received = true, .error = wire::term::kMpaCrc}.pack(),
                    .values = values(Scope::queue_pair, of_pair)}};
  return p;
}

CountingProcess with_two_engines() {
  CountingProcess p = one();
  p.pid = 4712;
  p.counters.engines.push_back(values(Scope::engine, {{"polls", 5}}));
  return p;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(StatText, SaysWhatIsNotZero) {
  const std::string text = counters_as_text(std::vector{one()}, false);
  EXPECT_THAT(text, HasSubstr("4711 rping, since 2023-11-14T22:13:20Z, 1 engine, 1 queue pair\n"));
  EXPECT_TRUE(std::regex_search(text, std::regex("\n +messages_sent\\.write +3 messages\n")));
  EXPECT_TRUE(std::regex_search(text, std::regex("\n +fpdus_sent +18446744073709551615 FPDUs\n")));
  EXPECT_TRUE(std::regex_search(text, std::regex("\n +polls +17 times\n")));
  EXPECT_THAT(text, HasSubstr("  queue pair 0x0c0101 (engine 0)\n"));
  EXPECT_THAT(text, HasSubstr("last Terminate: received, MPA: CRC mismatch (2/0/02)\n"));
  EXPECT_THAT(text, Not(HasSubstr("messages_sent.send")));
  EXPECT_THAT(text, Not(HasSubstr("  engine 0\n"))) << "the device says the same";
}

TEST(StatText, ThePeerOfAConnection) {
  CountingProcess p = one();
  p.counters.queue_pairs[0].peer = {.address = Gid::from_ipv4(0xc0000207), .port = 18515};
  EXPECT_THAT(counters_as_text(std::vector{p}, false),
              HasSubstr("  queue pair 0x0c0101 (engine 0), peer 192.0.2.7 port 18515\n"));
  const auto json = counters_as_json(std::vector{p}, false)["processes"][0]["queue_pairs"][0];
  EXPECT_EQ(json["peer"]["address"], "192.0.2.7");
  EXPECT_EQ(json["peer"]["port"], 18515);
}

TEST(StatText, AllHasEachCounter) {
  const std::string text = counters_as_text(std::vector{one()}, true);
  for (const stats::Row& row : stats::table()) {
    EXPECT_THAT(text, HasSubstr("    " + row.name() + " "));
  }
}

TEST(StatText, SeveralEngines) {
  const std::string text = counters_as_text(std::vector{one(), with_two_engines()}, false);
  EXPECT_THAT(text, HasSubstr("4712 rping, since 2023-11-14T22:13:20Z, 2 engines, 1 queue pair\n"));
  EXPECT_TRUE(std::regex_search(text, std::regex("  engine 1\n +polls +5 times\n")));
}

TEST(StatJson, HasTheSame) {
  const auto json = counters_as_json(std::vector{one(), with_two_engines()}, false);
  ASSERT_EQ(json["processes"].size(), 2U);
  const auto& p = json["processes"][0];
  EXPECT_EQ(p["pid"], 4711);
  EXPECT_EQ(p["program"], "rping");
  EXPECT_EQ(p["started"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(p["device"].size(), 4U);
  EXPECT_EQ(p["device"]["ports_opened"], 1);
  EXPECT_EQ(p["engines"][0]["counters"]["polls"], 17);
  const auto& pair = p["queue_pairs"][0];
  EXPECT_EQ(pair["qpn"], "0x0c0101");
  EXPECT_EQ(pair["engine"], 0);
  EXPECT_TRUE(pair["peer"].is_null());
  EXPECT_FALSE(pair.contains("per_second"));
  EXPECT_EQ(pair["counters"]["fpdus_sent"], UINT64_MAX);
  EXPECT_EQ(pair["last_terminate"]["received"], true);
  EXPECT_EQ(pair["last_terminate"]["error"], "mpa_crc");
  EXPECT_EQ(json["processes"][1]["engines"][1]["counters"]["polls"], 5);

  CountingProcess calm = one();
  calm.counters.queue_pairs[0].last_terminate = 0;
  const auto all = counters_as_json(std::vector{calm}, true)["processes"][0];
  EXPECT_EQ(all["device"].size(), stats::table().size());
  EXPECT_TRUE(all["queue_pairs"][0]["last_terminate"].is_null());
  EXPECT_TRUE(counters_as_json({}, true)["processes"].is_array());
}

// https://prometheus.io/docs/instrumenting/exposition_formats: HELP and TYPE once, then all lines
// of the metric, and none twice.
TEST(StatPrometheus, IsItsFormat) {
  const std::string text = counters_as_prometheus(std::vector{one(), with_two_engines()}, true);
  const std::regex sample(R"re(([a-z_0-9]+)\{((?:[a-z]+="[^"]*",?)+)\} ([0-9]+))re");
  std::set<std::string> metrics;
  std::set<std::string> series;
  std::string current;
  for (const std::string& line : lines_of(text)) {
    std::smatch m;
    if (line.starts_with("# HELP ")) {
      current = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(metrics.insert(current).second) << current;
      EXPECT_TRUE(current.starts_with("weft_") && current.ends_with("_total")) << current;
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_EQ(line, "# TYPE " + current + " counter");
    } else if (std::regex_match(line, m, sample)) {
      EXPECT_EQ(m[1], current);
      EXPECT_TRUE(series.insert(m[1].str() + m[2].str()).second) << line;
    } else {
      ADD_FAILURE() << line;
    }
  }
  const size_t of_pair = stats::row_count(Scope::queue_pair);
  const size_t of_engine = stats::row_count(Scope::engine);
  EXPECT_EQ(series.size(), 2 * of_pair + 3 * of_engine + 2 * stats::table().size());
  EXPECT_THAT(text, HasSubstr("\nweft_device_polls_total{pid=\"4711\",program=\"rping\"} 17\n"));
  EXPECT_THAT(text,
              HasSubstr("\nweft_engine_polls_total{pid=\"4712\",program=\"rping\",engine=\"1\"} "
                        "5\n"));
  EXPECT_THAT(text, HasSubstr("\nweft_qp_messages_sent_total{pid=\"4711\",program=\"rping\",engine="
                              "\"0\",qpn=\"0x0c0101\",kind=\"write\"} 3\n"));
}

TEST(StatPrometheus, ZerosAndNamesOfPrograms) {
  CountingProcess p = one();
  p.program = "a\\b\"c\nd";
  const std::string text = counters_as_prometheus(std::vector{p}, false);
  EXPECT_THAT(text, HasSubstr(R"(weft_device_polls_total{pid="4711",program="a\\b\"c\nd"} 17)"));
  EXPECT_THAT(text, Not(HasSubstr(" 0\n")));
  EXPECT_THAT(text, Not(HasSubstr("sleeps"))) << "no HELP without a value";
}

TEST(StatChanges, WhatMovedAndByHowMuch) {
  const CountingProcess before = one();
  CountingProcess now = one();
  now.counters.device = values(Scope::device, {{"messages_sent.write", 10}, {"polls", 17}});
  now.counters.queue_pairs[0].values = values(Scope::queue_pair, {{"messages_sent.write", 10}});
  now.counters.queue_pairs.push_back(
      {.qpn = 0x0c0102, .values = values(Scope::queue_pair, {{"rnr_sent", 4}})});
  now.counters.queue_pairs[0].peer = {.address = Gid::from_ipv4(0xc0000207), .port = 18515};
  const std::vector was{before};
  const LookBefore look{.processes = was, .seconds = 2};
  const std::string text = changes_as_text(look, std::vector{now});
  EXPECT_TRUE(std::regex_search(
      text, std::regex("device\n +messages_sent\\.write +10 +\\+7  3\\.5 messages/s\n")))
      << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("0x0c0102\n +rnr_sent +4 +\\+4  2\\.0 times/s\n")))
      << "a new one began at 0";
  EXPECT_THAT(text, Not(HasSubstr("polls")));
  EXPECT_THAT(text, HasSubstr("  queue pair 0x0c0101, peer 192.0.2.7 port 18515\n"));

  const auto json = counters_as_json(std::vector{now}, false, look)["processes"][0];
  EXPECT_EQ(json["seconds"], 2);
  EXPECT_EQ(json["device_per_second"], (nlohmann::json{{"messages_sent.write", 3.5}}));
  EXPECT_EQ(json["queue_pairs"][1]["per_second"], (nlohmann::json{{"rnr_sent", 2.0}}));
}

TEST(StatChanges, BytesASecondHaveAPrefix) {
  const CountingProcess before = one();
  CountingProcess now = one();
  const std::vector was{before};
  for (const auto& [bytes, rate] :
       std::map<uint64_t, std::string>{{998, "499.0 B/s"},
                                       {24'000, "12.0 kB/s"},
                                       {2'500'000'000, "1.2 GB/s"},
                                       {5'000'000'000'000, "2500.0 GB/s"}}) {
    now.counters.device = values(Scope::device, {{"bytes_sent.write", bytes}});
    EXPECT_THAT(changes_as_text({.processes = was, .seconds = 2}, std::vector{now}),
                HasSubstr("  " + rate + "\n"));
  }
}

// A queue pair that went, and another one that has its number.
TEST(StatChanges, NothingIsLess) {
  const CountingProcess before = one();
  CountingProcess now = one();
  now.counters.queue_pairs[0].values = values(Scope::queue_pair, {{"messages_sent.write", 1}});
  const std::vector was{before};
  EXPECT_TRUE(
      std::regex_search(changes_as_text({.processes = was, .seconds = 1}, std::vector{now}),
                        std::regex(" +messages_sent\\.write +1 +\\+1  1\\.0 messages/s\n")));
}

// Another process may have the number by now, and one that has just come has nothing to compare.
TEST(StatChanges, OnlyOfTheSameProcess) {
  CountingProcess again = one();
  again.counters.started_ns += 1;
  const std::vector was{one()};
  const LookBefore look{.processes = was, .seconds = 1};
  EXPECT_EQ(changes_as_text(look, std::vector{again}), "");
  EXPECT_EQ(changes_as_text({}, std::vector{one()}), "");
  EXPECT_EQ(lines_of(changes_as_text(look, std::vector{one()})).size(), 1U);
  EXPECT_FALSE(
      counters_as_json(std::vector{again}, false, look)["processes"][0].contains("seconds"));
}

// A process that says other numbers of engines, as one of another user may.
TEST(StatChanges, NotOfAProcessThatHasMoreEnginesThanBefore) {
  CountingProcess more = with_two_engines();
  more.pid = one().pid;
  const std::vector was{one()};
  const LookBefore look{.processes = was, .seconds = 1};
  EXPECT_EQ(changes_as_text(look, std::vector{more}), "");
  EXPECT_FALSE(
      counters_as_json(std::vector{more}, false, look)["processes"][0].contains("seconds"));
}

TEST(StatMarkdown, HasEachCounterOnce) {
  const std::vector<std::string> lines = lines_of(counters_as_markdown());
  for (const stats::Row& row : stats::table()) {
    EXPECT_EQ(std::count(lines.begin(), lines.end(),
                         "| `" + row.name() + "` | " + row.unit() + " | " + row.sentence + " |"),
              1)
        << row.name();
  }
}

}  // namespace
}  // namespace weft::tools
