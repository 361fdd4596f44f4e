#include "verbs/number_pool.h"

#include <algorithm>
#include <chrono>

namespace weft::verbs {
namespace {

using namespace std::chrono_literals;
constexpr Duration kRest = 2s;  // spec/addressing 2.3

}  // namespace

void NumberPool::Queue::make_room(size_t count) {
  if (count <= room_) return;
  const size_t more = std::max(count, 2 * room_);
  auto slots = std::make_unique<Free[]>(more);
  for (size_t i = 0; i < size_; ++i) slots[i] = slots_[(first_ + i) % room_];
  slots_ = std::move(slots);
  room_ = more;
  first_ = 0;
}

std::optional<Qpn> NumberPool::Queue::pop() {
  if (size_ == 0) return {};
  const Qpn number = slots_[first_].number;
  first_ = (first_ + 1) % room_;
  --size_;
  return number;
}

void NumberPool::add_port(uint16_t port) {
  unknown_.make_room(count_ + kOfAPort);
  resting_.make_room(count_ + kOfAPort);
  count_ += kOfAPort;
  for (unsigned i = 1; i <= kOfAPort; ++i) {
    unknown_.push({.number = make_qpn(port, static_cast<uint8_t>(i)), .since = {}});
  }
}

std::optional<Qpn> NumberPool::take(Time now) {
  if (const auto number = unknown_.pop()) return number;
  if (resting_.size() == 0 || now - resting_.front().since < kRest) return {};
  return resting_.pop();
}

std::optional<Qpn> NumberPool::take_resting() {
  return resting_.pop();
}

void NumberPool::give_back(Qpn number, bool known, Time now) {
  (known ? resting_ : unknown_).push({number, now});
}

}  // namespace weft::verbs
