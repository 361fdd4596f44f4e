#include "stats/table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

namespace weft::stats {
namespace {

size_t size_of(Scope scope) {
  switch (scope) {
    case Scope::queue_pair:
      return sizeof(QpCounters);
    case Scope::engine:
      return sizeof(EngineCounters);
    case Scope::device:
      break;
  }
  return sizeof(DeviceCounters);
}

// No cell without a name, no name without a cell, none twice.
TEST(Table, NamesEachCellOnce) {
  std::map<Scope, std::set<size_t>> places;
  for (const Row& row : table()) {
    EXPECT_EQ(row.offset % sizeof(Cell), 0U) << row.name();
    EXPECT_LT(row.offset, size_of(row.scope)) << row.name();
    EXPECT_TRUE(places[row.scope].insert(row.offset).second) << row.name();
  }
  for (const Scope scope : {Scope::queue_pair, Scope::engine, Scope::device}) {
    EXPECT_EQ(places[scope].size() * sizeof(Cell), size_of(scope));
  }
}

TEST(Table, NamesAreUniqueAndFitForPrometheus) {
  std::set<std::string> names;
  for (const Row& row : table()) {
    EXPECT_TRUE(names.insert(row.name()).second) << row.name();
    for (const std::string& part : {row.family, row.kind}) {
      EXPECT_EQ(part.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), std::string::npos)
          << part;
    }
    EXPECT_FALSE(row.family.empty());
    EXPECT_NE(row.sentence, "") << row.name();
    EXPECT_EQ(row.sentence.find('|'), std::string::npos) << "it stands in a Markdown table";
    EXPECT_EQ(row.sentence.find('\n'), std::string::npos);
    EXPECT_NE(row.sentence.back(), '.') << row.sentence;
  }
}

// A family is one metric: its rows stand together, have a kind each, and say the same about it.
TEST(Table, FamiliesStandTogether) {
  std::map<std::string, std::string> about;
  std::string before;
  for (const Row& row : table()) {
    if (row.family != before) {
      EXPECT_FALSE(about.contains(row.family)) << row.name();
      about[row.family] = row.about;
    }
    EXPECT_EQ(about[row.family], row.about);
    before = row.family;
  }
}

// What a queue pair counts begins the values of its engine, and these the device's.
TEST(Table, ScopesComeInOrder) {
  const auto rows = table();
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_LE(rows[i - 1].scope, rows[i].scope);
  EXPECT_EQ(row_count(Scope::device), rows.size());
  EXPECT_LT(row_count(Scope::queue_pair), row_count(Scope::engine));
  EXPECT_EQ(rows[row_count(Scope::engine)].scope, Scope::device);
  EXPECT_EQ(rows[row_count(Scope::queue_pair)].scope, Scope::engine);
}

uint64_t value_of(std::span<const uint64_t> values, const std::string& name) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (table()[i].name() == name) return values[i];
  }
  ADD_FAILURE() << "no row " << name;
  return 0;
}

TEST(Table, ValuesStandWhereTheirNamesDo) {
  QpCounters qp;
  qp.sent(Kind::send);
  qp.sent(Kind::write, 4096);
  qp.sent(Kind::write, 4);
  qp.received(Kind::atomic);
  qp.received(Kind::read, 77);
  qp.rnr_received.add(3);
  auto engine = std::make_unique<EngineCounters>();
  engine->polls.add(9);
  count(engine->refused, wire::Refusal::crc);
  count(engine->terminate_sent, wire::index_of(wire::term::kMpaCrc));
  count(engine->completion_error, 3);
  count(engine->bring_up_refused, BringUpRefusal::qp_left);
  DeviceCounters device;
  device.ports_opened.add_shared(2);

  std::vector<uint64_t> values(row_count(Scope::device), 1);
  add_values(qp, values);
  add_values(*engine, values);
  add_values(device, values);
  const std::map<std::string, uint64_t> expected = {
      {"messages_sent.send", 1},
      {"messages_sent.write", 0},
      {"bytes_sent.write", 4100},
      {"messages_received.atomic", 1},
      {"bytes_received.read", 77},
      {"rnr_received", 3},
      {"polls", 9},
      {"refused.crc", 1},
      {"terminate_sent.mpa_crc", 1},
      {"terminate_received.mpa_crc", 0},
      {"completion_error.flushed", 1},
      {"bring_up_refused.qp_left", 1},
      {"ports_opened", 2},
      {"completion_queue_overruns", 0},
  };
  for (const auto& [name, n] : expected) EXPECT_EQ(value_of(values, name), n + 1) << name;
  uint64_t sum = 0;
  for (const uint64_t v : values) sum += v - 1;
  EXPECT_EQ(sum, 1 + 4100 + 1 + 77 + 3 + 9 + 4 + 2U) << "and nowhere else";
}

// A block that a reader has no rows for is left out.
TEST(Table, ValuesOfAQueuePairAlone) {
  QpCounters qp;
  qp.completion_errors.add(5);
  std::vector<uint64_t> values(row_count(Scope::queue_pair));
  add_values(qp, values);
  EXPECT_EQ(value_of(values, "completion_errors"), 5U);
}

TEST(Table, TheFingerprintIsThatOfThisTable) {
  EXPECT_EQ(fingerprint(), fingerprint());
  EXPECT_NE(fingerprint(), 0U);
}

}  // namespace
}  // namespace weft::stats
