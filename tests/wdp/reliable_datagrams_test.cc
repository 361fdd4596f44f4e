// Reliable datagrams (spec/wdp-rd) between many sockets, over a network that loses, doubles and
// reorders, one by one and in bursts: nothing is lost, nothing comes twice, each flow in order. All
// randomness comes from the seed.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/draw.h"
#include "base/fault_plan.h"
#include "sim/scheduler.h"
#include "sim/seeds.h"
#include "tests/support/rd_node.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using work::Status;

constexpr uint8_t kQueuePairs = 3;  // of each host, numbered from 1

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

// FaultSpec's bursts are counted in datagrams, and a handshake is few of them: here all that a host
// sends is lost for a while.
struct Network {
  FaultSpec faults;
  Duration delay = 25us;
  double outage = 0;  // chance that one begins with a datagram
  Duration outage_lasts{0};
};

// Hosts 1 to n, each with a socket.
class Hosts {
 public:
  Hosts(uint64_t seed, size_t count, const Network& network)
      : random_(seed * 977 + 5), network_(network) {
    for (size_t i = 1; i <= count; ++i) add(static_cast<uint8_t>(i), seed * 1000 + i);
  }

  RdNode& host(uint8_t number) { return *places_.at(number)->node; }
  RdNode::Pair& pair(uint8_t host_number, uint8_t index) {
    for (RdNode::Pair& p : host(host_number).pairs) {
      if (index_of(p.number) == index) return p;
    }
    std::abort();
  }
  // A life ends without a word, and another one begins on the same port.
  void restart(uint8_t number) {
    places_.erase(number);
    add(number, random_.next());
  }
  // It may have something to say.
  void wake(uint8_t number) {
    const auto it = places_.find(number);
    if (it == places_.end()) return;
    Place& place = *it->second;
    for (auto& d : place.node->said(scheduler.now())) carry(number, place, std::move(d));
    place.alarm.set(place.node->deadline());
  }
  SeededRandom& random() { return random_; }
  sim::Scheduler scheduler;

 private:
  struct Place {
    Place(sim::Scheduler& s, sim::Scheduler::Action ring, const FaultSpec& faults, uint64_t way)
        : plan(faults, way), alarm(s, std::move(ring)) {}
    std::unique_ptr<RdNode> node;
    FaultPlan plan;  // of what it sends
    Time silent_until;
    sim::Alarm alarm;
  };

  void add(uint8_t number, uint64_t seed) {
    auto ring = [this, number] {
      host(number).tick(scheduler.now());
      wake(number);
    };
    auto place = std::make_unique<Place>(scheduler, ring, network_.faults, seed);
    place->node = std::make_unique<RdNode>(number, seed, scheduler.now());
    for (uint8_t i = 1; i <= kQueuePairs; ++i) place->node->add_pair(i);
    places_[number] = std::move(place);
  }
  void carry(uint8_t from, Place& place, RdNode::Datagram d) {
    const DatagramFate fate = place.plan.next(d.bytes.size());
    const Time now = scheduler.now();
    if (now < place.silent_until) return;
    if (draw_chance(random_, network_.outage)) {
      place.silent_until = now + draw_up_to(random_, network_.outage_lasts);
    }
    for (uint8_t i = 0; i < fate.copies; ++i) {
      const DatagramFate::Copy& copy = fate.copy[i];
      scheduler.after(network_.delay + copy.delay,
                      [this, from, to = d.to, bytes = d.bytes] { arrive(from, to, bytes); });
    }
  }
  void arrive(uint8_t from, const wdp::Endpoint& to, const Buffer& bytes) {
    for (auto& [number, place] : places_) {
      if (place->node->address != to) continue;
      place->node->hear(bytes, RdNode::address_of(from), scheduler.now());
      wake(number);
    }
  }

  SeededRandom random_;
  const Network network_;
  std::map<uint8_t, std::unique_ptr<Place>> places_;
};

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

Network bad_network(uint64_t seed) {
  SeededRandom random{seed * 31 + 7};
  const auto share = [&](double most) {
    return most * static_cast<double>(draw_below(random, 101)) / 100;
  };
  Network n;
  n.faults.seed = seed;
  n.faults.loss = share(0.1);
  n.outage = share(0.01);
  n.outage_lasts = draw_up_to(random, 50ms);
  n.faults.duplicate = share(0.1);
  n.faults.reorder = share(0.2);
  n.faults.reorder_delay = draw_up_to(random, 2ms);
  n.delay = draw_chance(random, 0.7) ? Duration{25us} : draw_up_to(random, 10ms);
  return n;
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
