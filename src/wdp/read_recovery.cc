// The second half of ReadRequester: how it notices that something is lost, and asks again.

#include <algorithm>

#include "wdp/read_requester.h"

namespace weft::wdp {

using wire::WdpData;
using work::Status;

// Only what was asked for once tells where the responder is: of a range that was asked for twice
// nobody knows which request a segment answers.
void ReadRequester::note_horizon(const Range& range, const WdpData& d, Time now) {
  if (horizon_) return;
  const bool earlier = ranges_.front().order < range.order;
  const uint32_t first = range.begin / range.read->stride;
  const uint32_t index = d.segment_index();
  if (!earlier && range.read->came.next_missing(first, index) >= index) return;
  horizon_ = {.order = range.order, .offset = d.mo.value(), .since = now};
}

// spec/wdp-uc 5.5: or earlier when the PSN shows that later datagrams of the response came (the
// bound of spec/wdp-uc 3.3 has passed), ask again, only for missing ranges.
void ReadRequester::judge_horizon(Time now) {
  const Horizon h = *horizon_;
  if (now < h.since + kHoldFor) return;
  horizon_.reset();
  for (size_t i = 0; i < ranges_.size();) {
    Range& r = ranges_[i];
    if (r.order > h.order) break;
    const uint32_t limit = r.order < h.order ? r.end : std::min(h.offset, r.end);
    const size_t asked_again = again_.size();
    const bool gone = split(r, limit);
    if (again_.size() > asked_again) ++r.read->attempt;
    if (gone) {
      ranges_.erase(ranges_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

bool ReadRequester::split(Range& range, uint32_t limit) {
  Read& read = *range.read;
  const uint32_t before = range.end - range.begin;
  const auto lose = [&](uint32_t begin, uint32_t end) {
    again_.push_back({.read = &read, .begin = begin, .end = end, .first_time = false});
  };
  if (read.stride == 0 || read.length == 0) {
    // Nothing of it has come.
    if (again_.size() >= kMostReRequests || limit < range.end) return false;
    lose(range.begin, range.end);
    outstanding_ -= before;
    return true;
  }
  const uint32_t stride = read.stride;
  const auto until = static_cast<uint32_t>((uint64_t{limit} + stride - 1) / stride);
  uint32_t at = range.begin / stride;
  while ((at = read.came.next_missing(at, until)) < until && again_.size() < kMostReRequests) {
    const uint32_t end = read.came.next_present(at, until);
    lose(std::max(at * stride, range.begin),
         static_cast<uint32_t>(std::min<uint64_t>(uint64_t{end} * stride, limit)));
    at = end;
  }
  const auto rest = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{at} * stride, limit));
  range.begin = std::max(range.begin, rest);
  outstanding_ -= before - (range.end - range.begin);
  return range.begin == range.end;
}

// Nothing new came for so long: all that is under way is lost.
void ReadRequester::expire(Read& read, Time now) {
  if (!has_ranges(read, ranges_)) {
    // It waits for its turn, here or in the socket.
    read.expires = has_ranges(read, again_) ? now + read.timeout : Time::never();
    return;
  }
  if (++read.expiries >= std::max<uint32_t>(parameters_.retry_count, 1)) {
    finish(read, Status::retry_exceeded);
    return;
  }
  const size_t before = again_.size();
  for (size_t i = 0; i < ranges_.size();) {
    if (ranges_[i].read == &read && split(ranges_[i], ranges_[i].end)) {
      ranges_.erase(ranges_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (again_.size() > before) ++read.attempt;
  read.timeout = std::min(read.timeout * 2, kMostDoubledTimeout);
  read.expires = now + read.timeout;
}

bool ReadRequester::has_ranges(const Read& read, const std::vector<Range>& list) const {
  return std::any_of(list.begin(), list.end(), [&](const Range& r) { return r.read == &read; });
}

Duration ReadRequester::timeout() const {
  // spec/wdp-uc 5.5: what is under way takes its time to come, besides.
  const double ns = static_cast<double>(outstanding_) / bytes_per_ns_;
  return rtt_.read_timeout() + std::min(Duration{static_cast<int64_t>(ns)}, kMostReadTimeout);
}

void ReadRequester::measure(uint32_t bytes, Time now) {
  constexpr uint64_t kEnough = 128 * 1024;
  measured_bytes_ += bytes;
  if (measured_bytes_ < kEnough || now <= measured_since_) return;
  const double rate =
      static_cast<double>(measured_bytes_) / static_cast<double>((now - measured_since_).count());
  bytes_per_ns_ = (bytes_per_ns_ * 3 + rate) / 4;
  measured_bytes_ = 0;
  measured_since_ = now;
}

Time ReadRequester::deadline() const {
  Time first = horizon_ ? horizon_->since + kHoldFor : Time::never();
  for (const auto& r : reads_) first = std::min(first, r->expires);
  return first;
}

void ReadRequester::tick(Time now) {
  if (horizon_) judge_horizon(now);
  for (size_t i = 0; i < reads_.size();) {
    Read& read = *reads_[i];
    if (now >= read.expires) {
      const size_t count = reads_.size();
      expire(read, now);
      if (reads_.size() < count) continue;
    }
    ++i;
  }
}

}  // namespace weft::wdp
