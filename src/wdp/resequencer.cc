#include "wdp/resequencer.h"

#include <algorithm>
#include <utility>

namespace weft::wdp {

void Resequencer::skip_seen(const PsnWindow& window) {
  while (window.seen(expected_)) expected_ = next(expected_);
}

void Resequencer::give_up_to(Psn psn) {
  if (distance(expected_, psn) > 0) expected_ = psn;
}

void Resequencer::arrived_with_gaps(Psn psn, const PsnWindow& window, Time now) {
  if (!std::exchange(started_, true)) expected_ = psn;
  skip_seen(window);
  if (distance(expected_, window.highest()) < 0) {
    while (!samples_.empty()) samples_.pop_front();
    return;
  }
  // There is a gap. How old it is only matters to what comes behind it, but that has to know.
  while (!samples_.empty() && now - samples_.front().at >= kHoldFor) {
    give_up_to(samples_.front().highest);
    samples_.pop_front();
  }
  skip_seen(window);
  const bool gap = distance(expected_, window.highest()) >= 0;
  if (gap && (samples_.empty() || now - samples_.back().at >= kSampleEvery)) {
    samples_.push_back({now, window.highest()});
  }
}

bool Resequencer::misses(Psn last, const PsnWindow& window) {
  if (!started_) return false;
  skip_seen(window);
  const int32_t more = distance(expected_, last);
  return more >= 0 && more <= kMostPsnJump;
}

void Resequencer::hold(Held held) {
  bytes_ += held.payload.size();
  auto at = held_.end();
  while (at != held_.begin() && distance(held.psn, std::prev(at)->psn) > 0) --at;
  held_.insert(at, std::move(held));
}

std::optional<Held> Resequencer::take_due(const PsnWindow& window) {
  if (held_.empty()) return {};
  if (full()) {
    give_up_to(held_.front().psn);
    skip_seen(window);
  }
  if (distance(expected_, held_.front().psn) >= 0) return {};
  Held due = std::move(held_.front());
  held_.erase(held_.begin());
  bytes_ -= due.payload.size();
  return due;
}

Time Resequencer::deadline() const {
  Time earliest = Time::never();
  for (const Held& h : held_) earliest = std::min(earliest, h.since + kHoldFor);
  return earliest;
}

void Resequencer::tick(const PsnWindow& window, Time now) {
  for (const Held& h : held_) {
    if (now >= h.since + kHoldFor) give_up_to(h.psn);
  }
  skip_seen(window);
}

void Resequencer::give_up_all() {
  if (!held_.empty()) give_up_to(next(held_.back().psn));
}

}  // namespace weft::wdp
