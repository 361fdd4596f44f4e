#include "sim/datagram_link.h"

#include <algorithm>
#include <utility>

namespace weft::sim {
namespace {

// What one direction suffers: nothing, where the spec means the other one. `out` is what A sends.
FaultSpec one_direction(FaultSpec spec, FaultDirection direction) {
  return spec.applies_to(direction) ? spec : FaultSpec{.seed = spec.seed};
}

// The seeds of spec and link both count. A spec that names none leaves the link's as it is.
FaultSpec seeded(FaultSpec spec, uint64_t seed) {
  spec.seed = seed + (spec.seed - FaultSpec{}.seed) * 0xd1342543de82ef95U;
  return spec;
}

}  // namespace

bool DatagramEnd::send(Bytes datagram) {
  return link_.send(*this, datagram);
}

std::optional<std::vector<std::byte>> DatagramEnd::receive() {
  if (arrived_.empty()) return {};
  auto datagram = std::move(arrived_.front());
  arrived_.pop_front();
  return datagram;
}

DatagramCounters DatagramEnd::counters() const {
  DatagramCounters c = counters_;
  c.faults = plan_.counts();
  return c;
}

DatagramLink::DatagramLink(Scheduler& scheduler, uint64_t seed, const DatagramOptions& options)
    : scheduler_(scheduler),
      options_(options),
      a_(*this, one_direction(seeded(options.faults, seed), FaultDirection::out), 1),
      b_(*this, one_direction(seeded(options.faults, seed), FaultDirection::in), 2),
      self_(std::make_shared<DatagramLink*>(this)) {}

DatagramLink::~DatagramLink() = default;

void DatagramLink::set_options(const DatagramOptions& options) {
  options_ = options;
  a_.plan_.change(one_direction(options.faults, FaultDirection::out));
  b_.plan_.change(one_direction(options.faults, FaultDirection::in));
}

bool DatagramLink::send(DatagramEnd& from, Bytes datagram) {
  if (datagram.size() > options_.mtu) return false;
  ++from.counters_.sent;
  if (from.watch_ && !from.watch_(datagram)) return true;
  from.last_departure_ = std::max(scheduler_.now(), from.last_departure_ + options_.spacing);
  const DatagramFate fate = from.plan_.next(datagram.size());
  for (size_t i = 0; i < fate.copies; ++i) {
    forward(from, fate.copy[i], {datagram.begin(), datagram.end()});
  }
  return true;
}

void DatagramLink::forward(DatagramEnd& from, const DatagramFate::Copy& way,
                           std::vector<std::byte> datagram) {
  way.damage(datagram);
  Time when = from.last_departure_ + std::max(Duration{1}, options_.delay) + way.delay;
  if (!way.may_be_overtaken) when = from.last_arrival_ = std::max(when, from.last_arrival_);
  scheduler_.at(when, [link = std::weak_ptr(self_), &from, damaged = way.flips > 0,
                       d = std::move(datagram)]() mutable {
    if (link.lock() != nullptr) from.link_.arrive(from, damaged, std::move(d));
  });
}

void DatagramLink::arrive(DatagramEnd& from, bool damaged, std::vector<std::byte> datagram) {
  DatagramEnd& to = peer_of(from);
  if (damaged && options_.checksum) {
    ++from.counters_.damaged;
    return;
  }
  if (to.arrived_.size() >= options_.queue) {
    ++from.counters_.overflowed;
    return;
  }
  ++from.counters_.delivered;
  to.arrived_.push_back(std::move(datagram));
  if (to.on_event_) to.on_event_();
}

}  // namespace weft::sim
