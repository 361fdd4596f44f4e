// The view on the terminal: what it says, and that it can be erased again.

#include "stream/live_view.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace weft::stream {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Snapshot receiver(size_t streams, uint64_t count) {
  Snapshot s{.side = "recv",
             .seconds = 2,
             .cpu_s = 0,
             .bytes = count,
             .facts = nlohmann::json::object(),
             .streams = {}};
  for (size_t i = 0; i < streams; ++i) {
    s.streams.push_back({{"bytes", count},
                         {"received", count},
                         {"missing", count / 10},
                         {"late", 12},
                         {"duplicate", 34},
                         {"overrun", 56},
                         {"gap", 78},
                         {"fill", 0.5},
                         {"cpu_share", 0.125},
                         {"watts_share", i == 0 ? nlohmann::json(7.5) : nlohmann::json(nullptr)}});
  }
  return s;
}

const std::string kLoad = "CPU 100 %  power unmeasured";

// The names of the columns, and what stands below them.
std::vector<std::pair<std::string, std::string>> columns(const std::string& heading,
                                                         const std::string& line) {
  std::istringstream names{heading};
  std::istringstream values{line};
  std::vector<std::pair<std::string, std::string>> row;
  for (std::string name, value; names >> name && values >> value;) row.emplace_back(name, value);
  return row;
}

TEST(LiveView, EachNumberHasItsColumn) {
  Snapshot before = receiver(2, 0);
  before.seconds = 1;
  const auto lines = lines_of(live_view(receiver(2, 125'000'000), before, kLoad, {24, 80}));
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[0], "weft stream recv  0:00:02  1.000 Gb/s  ");
  EXPECT_EQ(lines[1], "  " + kLoad);
  EXPECT_EQ(lines[2], "  duplicate 68");
  std::vector<std::pair<std::string, std::string>> expected{
      {"stream", "1"},         {"Mb/s", "1000.0"}, {"received", "125000000"},
      {"missing", "12500000"}, {"late", "12"},     {"overrun", "56"},
      {"gap", "78"},           {"CPU%", "12.5"},   {"W", "-"},
      {"ring", "[###"}};
  EXPECT_EQ(columns(lines[3], lines[5]), expected);
  expected[0].second = "0";
  expected[8].second = "7.5";
  EXPECT_EQ(columns(lines[3], lines[4]), expected);
}

// A line that is longer than the terminal takes two rows, and the next view would not erase it.
TEST(LiveView, FitsIntoTheTerminal) {
  Snapshot now = receiver(50, 125'000'000);
  now.facts = {{"kernel_drops", 7}, {"datagrams_lost", 9}};
  now.streams[3]["invalid"] = 4;
  for (const TerminalSize size :
       {TerminalSize{24, 80}, TerminalSize{10, 40}, TerminalSize{5, 20}}) {
    const auto lines = lines_of(live_view(now, {}, kLoad, size));
    EXPECT_LE(lines.size(), size.rows - 1) << size.columns;
    for (const auto& line : lines) EXPECT_LE(line.size(), size.columns) << line;
  }
  const auto lines = lines_of(live_view(now, {}, kLoad, {24, 80}));
  EXPECT_EQ(lines[2], "  datagrams_lost 9  kernel_drops 7  invalid 4  duplicate 1700");
  ASSERT_EQ(lines.size(), 23U);
  EXPECT_EQ(lines[22], "       ... and 32 more; all: missing 625000000");
  // In 80 columns nothing is cut off.
  EXPECT_EQ(lines[21].size(), 79U);
  EXPECT_TRUE(lines[21].ends_with("[###   ]"));
}

TEST(LiveView, OfASender) {
  Snapshot now{.side = "send",
               .seconds = 61,
               .cpu_s = 0,
               .bytes = 0,
               .facts = nlohmann::json::object(),
               .streams = {}};
  now.facts["late_us"]["p99"] = 120.0;
  const auto add = [&now](uint64_t sent, double p99, double max) {
    now.streams.push_back({{"bytes", 0},
                           {"sent", sent},
                           {"skipped", 6},
                           {"late_p99_us", p99},
                           {"late_max_us", max},
                           {"cpu_share", 0.031},
                           {"watts_share", 1.25}});
  };
  add(5, 119.6, 4000);
  auto lines = lines_of(live_view(now, {}, kLoad, {24, 80}));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "weft stream send  0:01:01  0.000 Gb/s  late p99 120 us");
  EXPECT_EQ(lines[1], "  " + kLoad);
  EXPECT_EQ(lines[2].size(), lines[3].size());
  EXPECT_LE(lines[3].size(), 79U);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"stream", "0"},   {"Mb/s", "0.0"},    {"sent", "5"},   {"skipped", "6"},
      {"p99_us", "120"}, {"max_us", "4000"}, {"CPU%", "3.1"}, {"W", "1.2"}};
  EXPECT_EQ(columns(lines[2], lines[3]), expected);
  // Of several the latest one.
  add(6, 250, 300);
  add(7, 80, 9000);
  lines = lines_of(live_view(now, {}, kLoad, {24, 80}));
  EXPECT_EQ(lines[0], "weft stream send  0:01:01  0.000 Gb/s  late p99 120 us (stream 1: 250 us)");
}

}  // namespace
}  // namespace weft::stream
