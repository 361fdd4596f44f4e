#include "wdp/sent_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::wdp {

using State = SentDatagram::State;

SentDatagram& SentLog::append(size_t size, ClientId client, uint64_t request) {
  DatagramBuffer buffer = spares_.take(size);
  SentDatagram& d = log_.push_back({});
  d.bytes = std::move(buffer.bytes);
  d.room = buffer.room;
  d.size = static_cast<uint32_t>(size);
  d.client = client;
  d.request = request;
  stored_ += d.weight();
  return d;
}

void SentLog::take_back() {
  stored_ -= log_.back().weight();
  give_back(log_.back());
  log_.pop_back();
}

void SentLog::grow_last(size_t size, size_t front, size_t most) {
  SentDatagram& d = log_.back();
  if (size > d.room || front > 0) {
    // One that grows will grow again.
    DatagramBuffer larger = spares_.take(std::max(size, std::min(most, 2 * size)));
    std::memcpy(larger.bytes.get() + front, d.bytes.get(), d.size);
    spares_.put({std::move(d.bytes), d.room});
    d.bytes = std::move(larger.bytes);
    d.room = larger.room;
  }
  stored_ -= d.weight();
  d.size = static_cast<uint32_t>(size);
  ++d.messages;
  stored_ += d.weight();
}

void SentLog::cut_last(size_t size) {
  SentDatagram& d = log_.back();
  stored_ -= d.weight();
  d.size = static_cast<uint32_t>(size);
  --d.messages;
  stored_ += d.weight();
}

// --- bytes

void SentLog::give_back(SentDatagram& d) {
  DatagramBuffer buffer{std::move(d.bytes), d.room};
  if (!is_lent(d)) return spares_.put(std::move(buffer));
  for (DatagramBuffer& place : lent_) {
    if (place.bytes == nullptr) {
      place = std::move(buffer);
      return;
    }
  }
}

void SentLog::lend(SentDatagram& d) {
  lent_.emplace_back();
  d.train = train_;
}

void SentLog::train_gone() {
  ++train_;
  for (DatagramBuffer& buffer : lent_) {
    if (buffer.bytes != nullptr) spares_.put(std::move(buffer));
  }
  lent_.clear();
}

// Not whenever the log is empty: one that is busy would grow again each time.
void SentLog::rest() {
  log_.trim();
  lost_.clear();
  lent_.shrink_to_fit();
  spares_.clear();
}

// Those that have come meanwhile, or were sent again to ask, are lost no more.
bool SentLog::has_lost() {
  while (!lost_.empty()) {
    const Csn csn = lost_.front();
    if (distance(front_, csn) >= 0 && at(csn).state == State::lost) return true;
    lost_.pop_front();
  }
  return false;
}

SentLog::Next SentLog::next_lost() {
  if (!has_lost()) return {};
  return {lost_.front(), &at(lost_.front())};
}

SentLog::Next SentLog::next_waiting() {
  if (!has_waiting()) return {};
  return {front_ + static_cast<uint32_t>(next_), &log_[next_]};
}

SentLog::Next SentLog::oldest() {
  for (size_t i = 0; i < next_; ++i) {
    if (log_[i].state != State::acknowledged) {
      return {front_ + static_cast<uint32_t>(i), &log_[i]};
    }
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
  outstanding_ -= log_.front().weight();
  log_.pop_front();
  --next_;
  front_ = next(front_);
}

}  // namespace weft::wdp
