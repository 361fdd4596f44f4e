#include "wdp/sent_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::wdp {

using State = SentDatagram::State;

SentDatagram& SentLog::append(size_t size, ClientId client, uint64_t request) {
  if (!kept_) kept_ = std::make_unique<Kept>();
  DatagramBuffer buffer = kept_->spares.take(size);
  SentDatagram& d = kept_->log.push_back({.bytes = std::move(buffer.bytes),
                                          .size = static_cast<uint32_t>(size),
                                          .room = buffer.room,
                                          .client = client,
                                          .request = request});
  stored_ += d.weight();
  return d;
}

void SentLog::take_back() {
  stored_ -= kept_->log.back().weight();
  give_back(kept_->log.back());
  kept_->log.pop_back();
}

void SentLog::grow_last(size_t size, size_t front, size_t most) {
  SentDatagram& d = kept_->log.back();
  if (size > d.room || front > 0) {
    // One that grows will grow again.
    DatagramBuffer larger = kept_->spares.take(std::max(size, std::min(most, 2 * size)));
    std::memcpy(larger.bytes.get() + front, d.bytes.get(), d.size);
    kept_->spares.put({std::move(d.bytes), d.room});
    d.bytes = std::move(larger.bytes);
    d.room = larger.room;
  }
  stored_ -= d.weight();
  d.size = static_cast<uint32_t>(size);
  ++d.messages;
  stored_ += d.weight();
}

void SentLog::cut_last(size_t size) {
  SentDatagram& d = kept_->log.back();
  stored_ -= d.weight();
  d.size = static_cast<uint32_t>(size);
  --d.messages;
  stored_ += d.weight();
}

// --- bytes

void SentLog::give_back(SentDatagram& d) {
  DatagramBuffer buffer{std::move(d.bytes), d.room};
  if (!is_lent(d)) return kept_->spares.put(std::move(buffer));
  for (DatagramBuffer& place : kept_->lent) {
    if (place.bytes == nullptr) {
      place = std::move(buffer);
      return;
    }
  }
}

void SentLog::lend(SentDatagram& d) {
  kept_->lent.emplace_back();
  d.train = train_;
}

void SentLog::train_gone() {
  ++train_;
  if (!kept_) return;
  for (DatagramBuffer& buffer : kept_->lent) {
    if (buffer.bytes != nullptr) kept_->spares.put(std::move(buffer));
  }
  kept_->lent.clear();
}

// Those that have come meanwhile, or were sent again to ask, are lost no more.
bool SentLog::has_lost() {
  if (!kept_) return false;
  while (!kept_->lost.empty()) {
    const Csn csn = kept_->lost.front();
    if (distance(front_, csn) >= 0 && at(csn).state == State::lost) return true;
    kept_->lost.pop_front();
  }
  return false;
}

SentLog::Next SentLog::next_lost() {
  if (!has_lost()) return {};
  return {kept_->lost.front(), &at(kept_->lost.front())};
}

SentLog::Next SentLog::next_waiting() {
  if (!has_waiting()) return {};
  return {front_ + static_cast<uint32_t>(next_), &kept_->log[next_]};
}

SentLog::Next SentLog::oldest() {
  for (size_t i = 0; i < next_; ++i) {
    SentDatagram& d = kept_->log[i];
    if (d.state != State::acknowledged) return {front_ + static_cast<uint32_t>(i), &d};
  }
  return {};
}

void SentLog::transmitted(Csn csn, Time now) {
  SentDatagram& d = at(csn);
  if (d.state == State::waiting) {
    ++next_;
    d.first_sent = now;
    outstanding_ += d.weight();
  } else {
    d.repeated = true;
  }
  if (d.state != State::under_way) in_flight_ += d.weight();
  d.state = State::under_way;
  d.order = ++orders_;
  ++d.times;
  d.sent = last_sent_ = now;
}

void SentLog::pop_front() {
  outstanding_ -= kept_->log.front().weight();
  kept_->log.pop_front();
  --next_;
  front_ = next(front_);
}

}  // namespace weft::wdp
