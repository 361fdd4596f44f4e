#include "wdp/sent_log.h"

namespace weft::wdp {

using State = SentDatagram::State;

SentDatagram& SentLog::append(size_t size, ClientId client, uint64_t request) {
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  SentDatagram& d = log_.emplace_back();
  d.bytes = std::move(bytes);
  d.size = static_cast<uint32_t>(size);
  d.client = client;
  d.request = request;
  stored_ += d.weight();
  return d;
}

void SentLog::take_back() {
  stored_ -= log_.back().weight();
  log_.pop_back();
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
    outstanding_ += d.weight();
  } else {
    d.repeated = true;
  }
  if (d.state != State::under_way) in_flight_ += d.weight();
  d.state = State::under_way;
  d.order = ++orders_;
  d.sent = last_sent_ = now;
}

void SentLog::pop_front() {
  outstanding_ -= log_.front().weight();
  log_.pop_front();
  --next_;
  front_ = next(front_);
}

}  // namespace weft::wdp
