// Hosts with channels (rd_node.h) on a network that loses, doubles and reorders, one by one and in
// bursts. All randomness comes from the seed.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>

#include "base/draw.h"
#include "base/fault_plan.h"
#include "sim/scheduler.h"
#include "tests/support/rd_node.h"

namespace weft::test {

// Of each host, numbered from 1.
constexpr uint8_t kQueuePairs = 3;

// FaultSpec's bursts are counted in datagrams, and a handshake is few of them: here all that a host
// sends is lost for a while.
struct Network {
  FaultSpec faults;
  Duration delay = std::chrono::microseconds{25};
  double marks = 0;   // chance that a router marks a datagram that says ECT (ECN)
  double outage = 0;  // chance that one begins with a datagram
  Duration outage_lasts{0};
};

// Hosts 1 to n, each with a socket.
class Hosts {
 public:
  enum class Type : uint8_t { ud, rd };
  // `rests`: do channels (spec/wdp-rd 2.5)? Else they end.
  Hosts(uint64_t seed, size_t count, const Network& network, Type type = Type::ud,
        bool rests = true)
      : random_(seed * 977 + 5), network_(network), type_(type), rests_(rests) {
    for (size_t i = 1; i <= count; ++i) add(static_cast<uint8_t>(i), seed * 1000 + i);
  }

  RdNode& host(uint8_t number) { return *places_.at(number)->node; }
  RdNode::Pair& pair(uint8_t host_number, uint8_t index) {
    for (RdNode::Pair& p : host(host_number).pairs) {
      if (index_of(p.number) == index) return p;
    }
    std::abort();
  }
  RdNode::Member& member(uint8_t host_number, uint8_t index) {
    for (RdNode::Member& m : host(host_number).members) {
      if (index_of(m.number) == index) return m;
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
    place->node->rests = rests_;
    for (uint8_t i = 1; i <= kQueuePairs; ++i) {
      if (type_ == Type::ud) {
        place->node->add_pair(i).way = {.most = 1472};
      } else {
        place->node->add_member(i);
      }
    }
    places_[number] = std::move(place);
  }
  void carry(uint8_t from, Place& place, RdNode::Datagram d) {
    const DatagramFate fate = place.plan.next(d.bytes.size());
    const Time now = scheduler.now();
    if (now < place.silent_until) return;
    if (draw_chance(random_, network_.outage)) {
      place.silent_until = now + draw_up_to(random_, network_.outage_lasts);
    }
    const bool ect = (d.traffic_class & wdp::kEcnBits) == wdp::kEct0;
    const bool marked = ect && draw_chance(random_, network_.marks);
    const uint8_t traffic_class = marked ? d.traffic_class | wdp::kCe : d.traffic_class;
    for (uint8_t i = 0; i < fate.copies; ++i) {
      const DatagramFate::Copy& copy = fate.copy[i];
      scheduler.after(network_.delay + copy.delay,
                      [this, from, to = d.to, bytes = d.bytes, traffic_class] {
                        arrive(from, to, bytes, traffic_class);
                      });
    }
  }
  void arrive(uint8_t from, const wdp::Endpoint& to, const Buffer& bytes, uint8_t traffic_class) {
    for (auto& [number, place] : places_) {
      if (place->node->address != to) continue;
      place->node->hear(bytes, RdNode::address_of(from), scheduler.now(), traffic_class);
      wake(number);
    }
  }

  SeededRandom random_;
  const Network network_;
  const Type type_;
  const bool rests_;
  std::map<uint8_t, std::unique_ptr<Place>> places_;
};

inline Network bad_network(uint64_t seed) {
  SeededRandom random{seed * 31 + 7};
  const auto share = [&](double most) {
    return most * static_cast<double>(draw_below(random, 101)) / 100;
  };
  Network n;
  n.faults.seed = seed;
  n.faults.loss = share(0.1);
  n.outage = share(0.01);
  n.outage_lasts = draw_up_to(random, std::chrono::milliseconds{50});
  n.marks = share(0.1);
  n.faults.duplicate = share(0.1);
  n.faults.reorder = share(0.2);
  n.faults.reorder_delay = draw_up_to(random, std::chrono::milliseconds{2});
  n.delay = draw_chance(random, 0.7) ? Duration{std::chrono::microseconds{25}}
                                     : draw_up_to(random, std::chrono::milliseconds{10});
  return n;
}

}  // namespace weft::test
