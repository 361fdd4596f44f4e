// Queue pairs of type RD (spec/wdp-rd 6) of several hosts over networks that lose, double and
// reorder: each request once, each flow in order, errors alone. All randomness comes from the seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/draw.h"
#include "sim/seeds.h"
#include "tests/support/rd_hosts.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using work::Status;

// What every member's board has: a counter for atomics, and a slot for each member that writes.
constexpr size_t kSlot = 4096;

using Place = std::pair<uint8_t, uint8_t>;  // host and queue pair
using Flow = std::pair<Place, Place>;

struct Books {
  std::map<Flow, uint32_t> sent;             // Sends, numbered
  std::map<Flow, uint32_t> got;              // the next one expected
  std::map<Place, uint64_t> added;           // to the counter of this one
  std::map<Place, size_t> refused;           // requests that must fail
  std::map<Flow, uint8_t> written;           // seed of the last Write
  std::map<Place, std::vector<bool>> fails;  // by request
};

Buffer labelled(const Place& from, uint32_t number, size_t size) {
  Buffer m = pattern_bytes(std::max<size_t>(size, 8), from.first * 131 + from.second + number);
  store_be(m.data(), number);
  store_be(m.data() + 4, uint32_t{from.first} << 8 | from.second);
  return m;
}

size_t slot_of(const Place& p) {
  return kSlot * (1 + (p.first - 1U) * kQueuePairs + (p.second - 1U));
}

void ask_something(Hosts& hosts, const Place& from, const Place& to, Books& books) {
  SeededRandom& random = hosts.random();
  RdNode::Member& m = hosts.member(from.first, from.second);
  RdNode::Member& target = hosts.member(to.first, to.second);
  const uint8_t index = to.second;
  const TaggedOffset board = address_of(target.board);
  bool fails = false;
  switch (draw_below(random, 6)) {
    case 0:
    case 1: {
      uint32_t& number = books.sent[{from, to}];
      m.send(to.first, index, labelled(from, number++, draw_below(random, 5000)));
      break;
    }
    case 2: {
      const auto seed = static_cast<uint8_t>(random.next());
      books.written[{from, to}] = seed;
      m.write(to.first, index, pattern_bytes(kSlot, seed), target.rkey, board + slot_of(from));
      break;
    }
    case 3:
      (void)m.read(to.first, index, draw_below(random, 20'000), target.rkey, board);
      break;
    case 4:
      (void)m.add(to.first, index, 1, target.rkey, board);
      ++books.added[to];
      break;
    default:
      fails = true;
      m.write(to.first, index, Buffer(draw_below(random, 5000) + 1), Stag{3}, board);
  }
  books.fails[from].push_back(fails);
}

void check_receives(Hosts& hosts, const Place& to, Books& books) {
  RdNode::Member& m = hosts.member(to.first, to.second);
  for (const RdNode::Received& r : m.received) {
    ASSERT_GE(r.bytes.size(), 8U);
    const auto number = load_be<uint32_t>(r.bytes.data());
    const auto who = load_be<uint32_t>(r.bytes.data() + 4);
    const Place from{static_cast<uint8_t>(who >> 8), static_cast<uint8_t>(who)};
    ASSERT_EQ(r.bytes, labelled(from, number, r.bytes.size()));
    ASSERT_EQ(index_of(r.source), from.second);
    ASSERT_EQ(number, (books.got[{from, to}]++)) << "in order, once, and each";
  }
}

std::vector<Place> all_places(uint8_t count) {
  std::vector<Place> all;
  for (uint8_t h = 1; h <= count; ++h) {
    for (uint8_t i = 1; i <= kQueuePairs; ++i) all.emplace_back(h, i);
  }
  return all;
}

// Each request ends as it should, and was done once.
void expect_all(Hosts& hosts, const std::vector<Place>& all, Books& books) {
  const auto complete = [&] {
    return std::all_of(all.begin(), all.end(), [&](const Place& p) {
      const RdNode::Member& m = hosts.member(p.first, p.second);
      return m.host.sent.size() == m.posted;
    });
  };
  ASSERT_TRUE(hosts.scheduler.run_until(complete, 120s));
  hosts.scheduler.run_for(1s);
  for (const Place& p : all) {
    RdNode::Member& m = hosts.member(p.first, p.second);
    for (size_t i = 0; i < m.host.sent.size(); ++i) {
      ASSERT_EQ(m.host.sent[i].wr_id, i + 1);
      ASSERT_EQ(m.status_of(i), books.fails[p][i] ? Status::remote_access : Status::success);
    }
    uint64_t counter = 0;
    std::memcpy(&counter, m.board.data(), sizeof counter);
    ASSERT_EQ(counter, books.added[p]) << "each atomic once";
    check_receives(hosts, p, books);
    m.received.clear();
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(books.got, books.sent);
  for (const auto& [flow, last] : books.written) {
    const RdNode::Member& m = hosts.member(flow.second.first, flow.second.second);
    const auto at = m.board.begin() + static_cast<ptrdiff_t>(slot_of(flow.first));
    EXPECT_EQ(Buffer(at, at + kSlot), pattern_bytes(kSlot, last)) << "the last Write";
  }
}

void all_to_all(uint64_t seed, uint8_t count, size_t requests) {
  Hosts hosts(seed, count, bad_network(seed), Hosts::Type::rd);
  Books books;
  SeededRandom& random = hosts.random();
  const auto any = [&] {
    return Place{static_cast<uint8_t>(1 + draw_below(random, count)),
                 static_cast<uint8_t>(1 + draw_below(random, kQueuePairs))};
  };
  const std::vector<Place> all = all_places(count);
  for (size_t i = 0; i < requests; ++i) {
    const Place from = any();
    ask_something(hosts, from, any(), books);
    if (draw_chance(random, 0.5)) hosts.wake(from.first);
    const Place reader = any();
    hosts.member(reader.first, reader.second).post_receives(draw_below(random, 2));
    hosts.wake(reader.first);
    if (draw_chance(random, 0.3)) hosts.scheduler.run_for(draw_up_to(random, 300us));
  }
  for (const Place& p : all) {
    hosts.member(p.first, p.second).post_receives(requests);
    hosts.wake(p.first);
  }
  expect_all(hosts, all, books);
}

// Requests that are posted about when their channel ends for want of messages.
TEST(RdQueuePairs, ChannelsThatEndForWantOfMessages) {
  for (const uint64_t seed : sim::seeds(60)) {
    WEFT_SIM_TRACE(seed);
    constexpr uint8_t kHosts = 3;
    Hosts hosts(seed, kHosts, bad_network(seed), Hosts::Type::rd);
    Books books;
    SeededRandom& random = hosts.random();
    const std::vector<Place> all = all_places(kHosts);
    for (const Place& p : all) hosts.member(p.first, p.second).post_receives(500);
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 40; ++i) {
        const Place& from = all[draw_below(random, all.size())];
        ask_something(hosts, from, all[draw_below(random, all.size())], books);
        hosts.wake(from.first);
        hosts.scheduler.run_for(draw_up_to(random, 2ms));
      }
      expect_all(hosts, all, books);
      if (HasFatalFailure()) return;
      // A second has passed since the last of them.
      hosts.scheduler.run_for(wdp::kIdleChannel - 1s - draw_up_to(random, 60ms));
    }
  }
}

TEST(RdQueuePairs, OverBadNetworks) {
  for (const uint64_t seed : sim::seeds(100)) {
    WEFT_SIM_TRACE(seed);
    all_to_all(seed, static_cast<uint8_t>(2 + seed % 4), 150);
    if (HasFatalFailure()) return;
  }
}

// Some hosts end without a word, and begin anew on the same port: every request ends.
TEST(RdQueuePairs, HostsThatBeginAnew) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    constexpr uint8_t kHosts = 4;
    Hosts hosts(seed, kHosts, bad_network(seed), Hosts::Type::rd);
    Books books;
    SeededRandom& random = hosts.random();
    const auto any = [&] {
      return Place{static_cast<uint8_t>(1 + draw_below(random, kHosts)),
                   static_cast<uint8_t>(1 + draw_below(random, kQueuePairs))};
    };
    const auto receives = [&](uint8_t host) {
      for (RdNode::Member& m : hosts.host(host).members) m.post_receives(300);
    };
    for (uint8_t h = 1; h <= kHosts; ++h) receives(h);
    for (int i = 0; i < 200; ++i) {
      const Place from = any();
      ask_something(hosts, from, any(), books);
      hosts.wake(from.first);
      if (draw_chance(random, 0.3)) hosts.scheduler.run_for(draw_up_to(random, 300us));
      if (!draw_chance(random, 0.02)) continue;
      hosts.restart(kHosts);
      receives(kHosts);
    }
    const auto complete = [&] {
      for (uint8_t h = 1; h <= kHosts; ++h) {
        for (const RdNode::Member& m : hosts.host(h).members) {
          if (m.host.sent.size() != m.posted) return false;
        }
      }
      return true;
    };
    ASSERT_TRUE(hosts.scheduler.run_until(complete, 120s));
  }
}

}  // namespace
}  // namespace weft::test
