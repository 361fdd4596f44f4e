#include "sim/datagram_link.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "sim/seeds.h"
#include "tests/support/hex.h"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::pattern;

// Sends `count` datagrams of 8 to 207 bytes, each numbered by its first 4 bytes, one every 10 us;
// what arrives, in order.
std::vector<Buffer> sent_through(const DatagramOptions& options, uint64_t seed, uint32_t count,
                                 DatagramCounters* counters = nullptr) {
  Scheduler s;
  DatagramLink link(s, seed, options);
  std::vector<Buffer> all;
  link.b().on_event([&] {
    while (auto d = link.b().receive()) all.push_back(*d);
  });
  for (uint32_t i = 0; i < count; ++i) {
    Buffer d = pattern(8 + i % 200, i);
    store_be(d.data(), i);
    EXPECT_TRUE(link.a().send(d));
    s.run_for(10us);
  }
  EXPECT_TRUE(s.run_until_idle(10s));
  if (counters != nullptr) *counters = link.a().counters();
  return all;
}
uint32_t number(const Buffer& d) {
  return load_be<uint32_t>(d.data());
}
bool intact(const Buffer& d) {
  Buffer expected = pattern(8 + number(d) % 200, number(d));
  store_be(expected.data(), number(d));
  return d == expected;
}

TEST(DatagramLink, CleanPathDeliversAllInOrder) {
  const auto all = sent_through({.faults = {.jitter = 50us}}, 1, 500);
  ASSERT_EQ(all.size(), 500U);
  for (uint32_t i = 0; i < 500; ++i) {
    EXPECT_EQ(number(all[i]), i);
    EXPECT_TRUE(intact(all[i]));
  }
}

TEST(DatagramLink, TakesDelayAndJitter) {
  Scheduler s;
  DatagramLink link(s, 3, {.delay = 30us, .faults = {.jitter = 10us}});
  link.b().send(pattern(1, 1));
  s.run_for(29us);
  EXPECT_EQ(link.a().readable(), 0U);
  s.run_for(11us);
  EXPECT_EQ(link.a().readable(), 1U);
}

TEST(DatagramLink, EmptyDatagramsAreDatagrams) {
  Scheduler s;
  DatagramLink link(s, 1, {.faults = {.corrupt = 1}});
  EXPECT_FALSE(link.b().receive().has_value());
  EXPECT_TRUE(link.a().send({}));
  s.run_for(1ms);
  ASSERT_EQ(link.b().readable(), 1U);
  EXPECT_TRUE(link.b().receive()->empty());
}

TEST(DatagramLink, AboveTheMtuIsRefused) {
  Scheduler s;
  DatagramLink link(s, 1, {.mtu = 100});
  EXPECT_TRUE(link.a().send(pattern(100, 1)));
  EXPECT_FALSE(link.a().send(pattern(101, 1)));
  EXPECT_EQ(link.a().counters().sent, 1U);
}

TEST(DatagramLink, LosesItsShare) {
  DatagramCounters c;
  const auto all = sent_through({.faults = {.loss = 0.2}}, 5, 5000, &c);
  EXPECT_NEAR(static_cast<double>(c.faults.lost), 1000, 120);
  EXPECT_EQ(all.size(), 5000 - c.faults.lost);
  EXPECT_EQ(c.delivered, all.size());
  for (size_t i = 1; i < all.size(); ++i) ASSERT_LT(number(all[i - 1]), number(all[i]));
}

TEST(DatagramLink, LosesAllOrNothingWhenAsked) {
  EXPECT_TRUE(sent_through({.faults = {.loss = 1}}, 1, 100).empty());
  EXPECT_EQ(sent_through({.faults = {.loss = 0}}, 1, 100).size(), 100U);
}

TEST(DatagramLink, DuplicatesAreWholeAndCounted) {
  DatagramCounters c;
  const auto all = sent_through({.faults = {.duplicate = 0.3}}, 6, 2000, &c);
  EXPECT_NEAR(static_cast<double>(c.faults.duplicated), 600, 100);
  std::map<uint32_t, int> seen;
  for (const Buffer& d : all) {
    EXPECT_TRUE(intact(d));
    ++seen[number(d)];
  }
  EXPECT_EQ(seen.size(), 2000U);
  uint64_t twice = 0;
  for (const auto& [n, times] : seen) {
    EXPECT_LE(times, 2);
    twice += times == 2 ? 1 : 0;
  }
  EXPECT_EQ(twice, c.faults.duplicated);
}

TEST(DatagramLink, ReorderingOvertakesButLosesNothing) {
  DatagramCounters c;
  const auto all = sent_through({.faults = {.reorder = 0.1, .reorder_delay = 200us}}, 7, 2000, &c);
  ASSERT_EQ(all.size(), 2000U);
  EXPECT_NEAR(static_cast<double>(c.faults.reordered), 200, 50);
  size_t late = 0;
  uint32_t highest = 0;
  std::map<uint32_t, int> seen;
  for (const Buffer& d : all) {
    if (number(d) < highest) ++late;
    EXPECT_LE(highest, number(d) + 21) << "200 us are 20 datagrams";
    highest = std::max(highest, number(d));
    ++seen[number(d)];
  }
  EXPECT_EQ(seen.size(), 2000U);
  EXPECT_GT(late, 100U);
  EXPECT_LE(late, c.faults.reordered);
}

TEST(DatagramLink, CorruptionFlipsOneToThreeBits) {
  Scheduler s;
  DatagramLink link(s, 8, {.faults = {.corrupt = 0.5}});
  uint64_t damaged = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Buffer d = pattern(1 + i % 100, i);
    link.a().send(d);
    s.run_for(1ms);
    const auto got = link.b().receive();
    ASSERT_TRUE(got.has_value());
    ASSERT_EQ(got->size(), d.size());
    int bits = 0;
    for (size_t k = 0; k < d.size(); ++k) {
      bits += std::popcount(std::to_integer<unsigned>(d[k] ^ (*got)[k]));
    }
    EXPECT_LE(bits, 3);
    damaged += bits > 0 ? 1 : 0;
  }
  EXPECT_EQ(damaged, link.a().counters().faults.corrupted);
  EXPECT_NEAR(static_cast<double>(damaged), 1000, 120);
}

TEST(DatagramLink, AChecksumKeepsDamageAway) {
  DatagramCounters c;
  const auto all = sent_through({.checksum = true, .faults = {.corrupt = 0.2}}, 9, 1000, &c);
  EXPECT_NEAR(static_cast<double>(c.damaged), 200, 40);
  EXPECT_EQ(c.damaged, c.faults.corrupted);
  EXPECT_EQ(all.size(), 1000 - c.damaged);
  for (const Buffer& d : all) EXPECT_TRUE(intact(d));
}

TEST(DatagramLink, ALineTakesOneAfterTheOther) {
  Scheduler s;
  DatagramLink link(s, 1, {.delay = 10us, .spacing = 2us});
  for (size_t n = 1; n <= 3; ++n) link.a().send(pattern(n, n));
  s.run_for(11us);
  EXPECT_EQ(link.b().readable(), 1U);
  s.run_for(2us);
  EXPECT_EQ(link.b().readable(), 2U);
  s.run_for(2us);
  EXPECT_EQ(link.b().readable(), 3U);
}

TEST(DatagramLink, AFullQueueDropsWhatComes) {
  Scheduler s;
  DatagramLink link(s, 1, {.queue = 3});
  for (uint32_t i = 0; i < 5; ++i) {
    Buffer d(4);
    store_be(d.data(), i);
    link.a().send(d);
  }
  s.run_for(1ms);
  ASSERT_EQ(link.b().readable(), 3U);
  EXPECT_EQ(link.a().counters().overflowed, 2U);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(number(*link.b().receive()), i);
}

TEST(DatagramLink, OptionsMayChangeOnTheWay) {
  Scheduler s;
  DatagramLink link(s, 1);
  link.a().send(pattern(10, 1));
  link.set_options({.faults = {.loss = 1}});
  link.a().send(pattern(10, 2));
  s.run_for(1ms);
  EXPECT_EQ(link.b().readable(), 1U);
  EXPECT_EQ(link.a().counters().faults.lost, 1U);
}

TEST(DatagramLink, TheSameSeedMakesTheSameRun) {
  const DatagramOptions bad{
      .faults = {.loss = 0.1, .duplicate = 0.1, .reorder = 0.2, .jitter = 30us, .corrupt = 0.1}};
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_TRUE(sent_through(bad, seed, 300) == sent_through(bad, seed, 300)) << seed;
  }
  EXPECT_FALSE(sent_through(bad, 1, 300) == sent_through(bad, 2, 300));
}

TEST(DatagramLink, TheSeedOfTheSpecCountsToo) {
  const auto of = [](uint64_t spec_seed) {
    return DatagramOptions{.faults = {.loss = 0.1, .reorder = 0.2, .seed = spec_seed}};
  };
  EXPECT_TRUE(sent_through(of(7), 3, 300) == sent_through(of(7), 3, 300));
  EXPECT_FALSE(sent_through(of(7), 3, 300) == sent_through(of(8), 3, 300));
  EXPECT_FALSE(sent_through(of(7), 3, 300) == sent_through(of(7), 4, 300));
}

// A spec without a seed leaves it to the link.
TEST(DatagramLink, WithoutASeedOfTheSpecTheLinksAloneCounts) {
  const auto all = sent_through({.faults = {.loss = 0.1}}, 3, 300);
  FaultPlan plan({.loss = 0.1, .seed = 3}, 1);
  std::vector<Buffer> expected;
  for (uint32_t i = 0; i < 300; ++i) {
    Buffer d = pattern(8 + i % 200, i);
    store_be(d.data(), i);
    if (plan.next(d.size()).copies > 0) expected.push_back(d);
  }
  EXPECT_LT(expected.size(), 300U);
  EXPECT_TRUE(all == expected);
}

// As WEFT_FAULT has it at the socket of A.
TEST(DatagramLink, ADirectionIsThatOfTheFirstEnd) {
  for (const FaultDirection direction :
       {FaultDirection::out, FaultDirection::in, FaultDirection::both}) {
    for (const bool later : {false, true}) {
      Scheduler s;
      const DatagramOptions bad{.faults = {.loss = 1, .direction = direction}};
      DatagramLink link(s, 1, later ? DatagramOptions{} : bad);
      if (later) link.set_options(bad);
      link.a().send(pattern(10, 1));
      link.b().send(pattern(10, 2));
      s.run_for(1ms);
      EXPECT_EQ(link.b().readable(), direction == FaultDirection::in ? 1U : 0U) << later;
      EXPECT_EQ(link.a().readable(), direction == FaultDirection::out ? 1U : 0U) << later;
    }
  }
}

TEST(DatagramLink, AWatchHearsAllAndMayLoseSome) {
  Scheduler s;
  DatagramLink link(s, 1);
  size_t heard = 0;
  link.a().watch([&](Bytes d) {
    ++heard;
    return d.size() != 2;
  });
  for (size_t n = 1; n <= 3; ++n) EXPECT_TRUE(link.a().send(pattern(n, n)));
  s.run_for(1ms);
  EXPECT_EQ(heard, 3U);
  ASSERT_EQ(link.b().readable(), 2U);
  EXPECT_EQ(link.b().receive()->size(), 1U);
  EXPECT_EQ(link.b().receive()->size(), 3U);
}

TEST(DatagramLink, MayGoWhileDatagramsAreOnTheWay) {
  Scheduler s;
  {
    DatagramLink link(s, 1);
    link.a().send(pattern(10, 1));
  }
  EXPECT_TRUE(s.run_until_idle(1s));
}

}  // namespace
}  // namespace weft::sim
