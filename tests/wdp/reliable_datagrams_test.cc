// Reliable datagrams (spec/wdp-rd) between many sockets, over a network that loses, doubles and
// reorders, one by one and in bursts: nothing is lost, nothing comes twice, each flow in order. All
// randomness comes from the seed.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/draw.h"
#include "sim/seeds.h"
#include "tests/support/rd_hosts.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using work::Status;

// Number and sender of a message; its bytes follow from both.
struct Label {
  uint32_t host = 0;
  uint32_t pair = 0;
  uint32_t number = 0;  // of its flow
};

Buffer message(const Label& label, size_t size) {
  Buffer m = pattern_bytes(std::max(size, sizeof label), label.host * 131 + label.number);
  std::memcpy(m.data(), &label, sizeof label);
  return m;
}

// What one host has been sent, and what it has got.
struct Books {
  // By sender's host and queue pair and the receiver's: numbers sent, and the next one expected.
  std::map<std::array<uint32_t, 4>, uint32_t> sent;
  std::map<std::array<uint32_t, 4>, uint32_t> got;
};

// Each message that has come is whole, and later than those of its flow before it; none of them is
// missing where `gaps` says so.
void read(Hosts& hosts, uint8_t number, Books& books, bool gaps) {
  for (RdNode::Pair& p : hosts.host(number).pairs) {
    for (const RdNode::Received& r : p.received) {
      Label label;
      ASSERT_GE(r.bytes.size(), sizeof label);
      std::memcpy(&label, r.bytes.data(), sizeof label);
      ASSERT_EQ(r.bytes, message(label, r.bytes.size()));
      ASSERT_EQ(index_of(r.source), label.pair);
      uint32_t& next = books.got[{label.host, label.pair, number, index_of(p.number)}];
      if (gaps) {
        ASSERT_GE(label.number, next) << "in order, and once";
      } else {
        ASSERT_EQ(label.number, next) << "in order, once, and each";
      }
      next = label.number + 1;
    }
    p.received.clear();
  }
}

void send_somewhere(Hosts& hosts, uint8_t from, size_t count, Books& books) {
  SeededRandom& random = hosts.random();
  const auto any_pair = [&] { return static_cast<uint8_t>(1 + draw_below(random, kQueuePairs)); };
  const auto to = static_cast<uint8_t>(1 + draw_below(random, count));  // itself, too
  const uint8_t source = any_pair();
  const uint8_t target = any_pair();
  uint32_t& number = books.sent[{from, source, to, target}];
  const Label label{from, source, number++};
  hosts.pair(from, source).send(to, target, message(label, draw_below(random, 1001)));
}

// All messages were sent, and come.
void expect_all(Hosts& hosts, size_t count, Books& books) {
  const auto complete = [&] {
    for (uint8_t h = 1; h <= count; ++h) {
      for (RdNode::Pair& p : hosts.host(h).pairs) {
        if (p.host.sent.size() != p.posted) return false;
      }
    }
    return true;
  };
  // The bound on any stall: losses in a row, each with a pause of a second at most.
  ASSERT_TRUE(hosts.scheduler.run_until(complete, 60s));
  hosts.scheduler.run_for(1s);
  for (uint8_t h = 1; h <= count; ++h) {
    for (RdNode::Pair& p : hosts.host(h).pairs) {
      for (const Host::Done& d : p.host.sent) ASSERT_EQ(d.status, Status::success);
    }
    read(hosts, h, books, false);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(books.got, books.sent);
}

// So many hosts send so many messages; receives come now and then, and are scarce.
void all_to_all(uint64_t seed, size_t count, size_t messages) {
  Hosts hosts(seed, count, bad_network(seed));
  Books books;
  SeededRandom& random = hosts.random();
  const auto any_host = [&] { return static_cast<uint8_t>(1 + draw_below(random, count)); };
  for (size_t i = 0; i < messages; ++i) {
    const uint8_t from = any_host();
    send_somewhere(hosts, from, count, books);
    if (draw_chance(random, 0.5)) hosts.wake(from);
    const uint8_t reader = any_host();
    hosts.pair(reader, static_cast<uint8_t>(1 + draw_below(random, kQueuePairs)))
        .post_receives(draw_below(random, 3));
    hosts.wake(reader);
    if (draw_chance(random, 0.3)) hosts.scheduler.run_for(draw_up_to(random, 300us));
  }
  for (uint8_t h = 1; h <= count; ++h) {
    for (RdNode::Pair& p : hosts.host(h).pairs) p.post_receives(messages);
    hosts.wake(h);
  }
  expect_all(hosts, count, books);
}

TEST(ReliableDatagrams, FewHostsOverBadNetworks) {
  for (const uint64_t seed : sim::seeds(150)) {
    WEFT_SIM_TRACE(seed);
    all_to_all(seed, 2 + seed % 4, 150);
    if (HasFatalFailure()) return;
  }
}

TEST(ReliableDatagrams, ManyHosts) {
  for (const uint64_t seed : sim::seeds(2)) {
    WEFT_SIM_TRACE(seed);
    all_to_all(seed, 100, 4000);
    if (HasFatalFailure()) return;
  }
}

// Messages that are sent about when their channel ends for want of messages, after two minutes.
TEST(ReliableDatagrams, ChannelsThatEndForWantOfMessages) {
  for (const uint64_t seed : sim::seeds(100)) {
    WEFT_SIM_TRACE(seed);
    constexpr size_t kHosts = 3;
    Hosts hosts(seed, kHosts, bad_network(seed), Hosts::Type::ud, false);
    Books books;
    SeededRandom& random = hosts.random();
    for (uint8_t h = 1; h <= kHosts; ++h) {
      for (RdNode::Pair& p : hosts.host(h).pairs) p.post_receives(500);
    }
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 40; ++i) {
        const auto from = static_cast<uint8_t>(1 + draw_below(random, kHosts));
        send_somewhere(hosts, from, kHosts, books);
        hosts.wake(from);
        hosts.scheduler.run_for(draw_up_to(random, 2ms));
      }
      expect_all(hosts, kHosts, books);
      if (HasFatalFailure()) return;
      // A second has passed since the last of them.
      hosts.scheduler.run_for(wdp::kIdleChannel - 1s - draw_up_to(random, 60ms));
    }
  }
}

// spec/wdp-rd 2.5: messages that are sent about when their channel comes to rest, at one end or at
// both.
TEST(ReliableDatagrams, ChannelsThatRest) {
  for (const uint64_t seed : sim::seeds(100)) {
    WEFT_SIM_TRACE(seed);
    constexpr size_t kHosts = 3;
    Hosts hosts(seed, kHosts, bad_network(seed));
    Books books;
    SeededRandom& random = hosts.random();
    for (uint8_t h = 1; h <= kHosts; ++h) {
      for (RdNode::Pair& p : hosts.host(h).pairs) p.post_receives(500);
    }
    size_t rested = 0;
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 10; ++i) {
        const auto from = static_cast<uint8_t>(1 + draw_below(random, kHosts));
        send_somewhere(hosts, from, kHosts, books);
        hosts.wake(from);
        hosts.scheduler.run_for(draw_up_to(random, 2ms));
      }
      const Duration longer = draw_chance(random, 0.5) ? wdp::kShortRest : 0ms;
      hosts.scheduler.run_for(wdp::kMemoryRests - 20ms + draw_up_to(random, 60ms) + longer);
      for (uint8_t h = 1; h <= kHosts; ++h) {
        rested += hosts.host(h).socket.channels().resting().size();
      }
    }
    EXPECT_GT(rested, 0U);
    expect_all(hosts, kHosts, books);
    if (HasFatalFailure()) return;
  }
}

// Hosts that begin anew while all channels have rested for long: their peers' messages are for the
// next life.
TEST(ReliableDatagrams, HostsThatBeginAnewMeanwhile) {
  for (const uint64_t seed : sim::seeds(60)) {
    WEFT_SIM_TRACE(seed);
    constexpr size_t kHosts = 3;
    Hosts hosts(seed, kHosts, bad_network(seed));
    SeededRandom& random = hosts.random();
    for (int round = 0; round < 6; ++round) {
      Books books;
      for (uint8_t h = 1; h <= kHosts; ++h) {
        if (draw_chance(random, 0.4)) hosts.restart(h);
        for (RdNode::Pair& p : hosts.host(h).pairs) p.post_receives(50);
      }
      for (int i = 0; i < 30; ++i) {
        const auto from = static_cast<uint8_t>(1 + draw_below(random, kHosts));
        send_somewhere(hosts, from, kHosts, books);
        if (draw_chance(random, 0.7)) hosts.wake(from);
        if (draw_chance(random, 0.3)) hosts.scheduler.run_for(draw_up_to(random, 2ms));
      }
      for (uint8_t h = 1; h <= kHosts; ++h) hosts.wake(h);
      expect_all(hosts, kHosts, books);
      if (HasFatalFailure()) return;
      // All rest by then, whatever was lost.
      hosts.scheduler.run_for(40s);
    }
  }
}

// Some hosts end without a word, and begin anew on the same port. Whatever they were sent comes
// once or not at all in each life; every request ends; and between the others nothing is lost.
TEST(ReliableDatagrams, HostsThatBeginAnew) {
  for (const uint64_t seed : sim::seeds(60)) {
    WEFT_SIM_TRACE(seed);
    constexpr size_t kHosts = 4;
    constexpr uint8_t kRestarts = kHosts;  // this one
    Hosts hosts(seed, kHosts, bad_network(seed));
    Books books;
    SeededRandom& random = hosts.random();
    for (uint8_t h = 1; h <= kHosts; ++h) {
      for (RdNode::Pair& p : hosts.host(h).pairs) p.post_receives(500);
    }
    for (int i = 0; i < 200; ++i) {
      const auto from = static_cast<uint8_t>(1 + draw_below(random, kHosts));
      send_somewhere(hosts, from, kHosts, books);
      hosts.wake(from);
      if (draw_chance(random, 0.3)) hosts.scheduler.run_for(draw_up_to(random, 300us));
      if (!draw_chance(random, 0.02)) continue;
      for (uint8_t h = 1; h <= kHosts; ++h) read(hosts, h, books, true);
      hosts.restart(kRestarts);
      for (RdNode::Pair& p : hosts.host(kRestarts).pairs) p.post_receives(500);
    }
    const auto complete = [&] {
      for (uint8_t h = 1; h <= kHosts; ++h) {
        for (RdNode::Pair& p : hosts.host(h).pairs) {
          if (p.host.sent.size() != p.posted) return false;
        }
      }
      return true;
    };
    // A handshake with a life that has ended takes 12.7 s, questions without answers half a minute.
    ASSERT_TRUE(hosts.scheduler.run_until(complete, 120s));
    hosts.scheduler.run_for(1s);
    for (uint8_t h = 1; h <= kHosts; ++h) {
      read(hosts, h, books, true);
      if (HasFatalFailure()) return;
    }
    for (const auto& [flow, sent] : books.sent) {
      if (flow[0] == kRestarts || flow[2] == kRestarts) continue;
      EXPECT_EQ(books.got[flow], sent);
    }
  }
}

}  // namespace
}  // namespace weft::test
