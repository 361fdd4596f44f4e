#include "sim/datagram_link.h"

#include <algorithm>
#include <utility>

#include "sim/draw.h"

namespace weft::sim {

bool DatagramEnd::send(Bytes datagram) {
  return link_->send(*this, datagram);
}

std::optional<std::vector<std::byte>> DatagramEnd::receive() {
  if (arrived_.empty()) return {};
  auto datagram = std::move(arrived_.front());
  arrived_.pop_front();
  return datagram;
}

DatagramLink::DatagramLink(Scheduler& scheduler, uint64_t seed, const DatagramOptions& options)
    : scheduler_(scheduler),
      random_(seed),
      options_(options),
      self_(std::make_shared<DatagramLink*>(this)) {
  a_.link_ = b_.link_ = this;
}

DatagramLink::~DatagramLink() = default;

bool DatagramLink::send(DatagramEnd& from, Bytes datagram) {
  if (datagram.size() > options_.mtu) return false;
  ++from.counters_.sent;
  const bool lost = draw_chance(random_, options_.loss);
  const bool twice = draw_chance(random_, options_.duplicate);
  if (lost) {
    ++from.counters_.lost;
    return true;
  }
  forward(from, {datagram.begin(), datagram.end()});
  if (twice) {
    ++from.counters_.duplicated;
    forward(from, {datagram.begin(), datagram.end()});
  }
  return true;
}

void DatagramLink::forward(DatagramEnd& from, std::vector<std::byte> datagram) {
  if (draw_chance(random_, options_.corrupt) && !datagram.empty()) {
    ++from.counters_.corrupted;
    // Different bits, or two flips might undo each other.
    const uint64_t first = draw_below(random_, datagram.size() * 8);
    const uint64_t bits = std::min<uint64_t>(1 + draw_below(random_, 3), datagram.size() * 8);
    for (uint64_t i = 0; i < bits; ++i) {
      const uint64_t bit = (first + i * 7) % (datagram.size() * 8);
      datagram[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
  }
  Time when = scheduler_.now() + std::max(Duration{1}, options_.delay) +
              draw_up_to(random_, options_.jitter);
  if (draw_chance(random_, options_.reorder)) {
    ++from.counters_.reordered;
    when = when + draw_up_to(random_, options_.reorder_delay);
  } else {
    when = from.last_arrival_ = std::max(when, from.last_arrival_);
  }
  scheduler_.at(when, [link = std::weak_ptr(self_), &from, d = std::move(datagram)]() mutable {
    if (link.lock() != nullptr) from.link_->arrive(from, std::move(d));
  });
}

void DatagramLink::arrive(DatagramEnd& from, std::vector<std::byte> datagram) {
  DatagramEnd& to = peer_of(from);
  if (to.arrived_.size() >= options_.queue) {
    ++from.counters_.overflowed;
    return;
  }
  ++from.counters_.delivered;
  to.arrived_.push_back(std::move(datagram));
  if (to.on_event_) to.on_event_();
}

}  // namespace weft::sim
