#include "wdp/read_ranges.h"

#include <algorithm>
#include <utility>

#include "wdp/limits.h"

namespace weft::wdp {

using wire::WdpData;

void ReadRanges::add(Range range, Time now) {
  range.order = next_order_++;
  range.asked_at = now;
  bytes_out_ += range.end - range.begin;
  out_.push_back(range);
}

ReadRanges::Range ReadRanges::take_lost() {
  const Range first = lost_.front();
  lost_.erase(lost_.begin());
  return first;
}

std::optional<Time> ReadRanges::answered(const PendingRead& read, const WdpData& d, Time now) {
  std::optional<Time> asked_alone;
  const uint32_t mo = d.mo.value();
  const uint64_t after = uint64_t{mo} + d.payload_size();
  for (size_t i = 0; i < out_.size();) {
    Range& r = out_[i];
    if (r.read != &read || after <= r.begin || mo >= r.end) {
      ++i;
      continue;
    }
    if (std::exchange(r.alone, false)) asked_alone = r.asked_at;
    if (r.first_time) note_horizon(r, d, now);
    const uint32_t first = r.begin / read.stride;
    const uint32_t last = (r.end - 1) / read.stride + 1;
    if (read.came.next_missing(first, last) == last) {
      bytes_out_ -= r.end - r.begin;
      out_.erase(out_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return asked_alone;
}

// Only what was asked for once tells where the responder is: of a range that was asked for twice
// nobody knows which request a segment answers.
void ReadRanges::note_horizon(const Range& range, const WdpData& d, Time now) {
  if (horizon_) return;
  const bool earlier = out_.front().order < range.order;
  const uint32_t first = range.begin / range.read->stride;
  const uint32_t index = d.segment_index();
  if (!earlier && range.read->came.next_missing(first, index) >= index) return;
  horizon_ = {.order = range.order, .offset = d.mo.value(), .since = now};
}

Time ReadRanges::deadline() const {
  return horizon_ ? horizon_->since + kHoldFor : Time::never();
}

// spec/wdp-uc 5.5: or earlier when the PSN shows that later datagrams of the response came (the
// bound of spec/wdp-uc 3.3 has passed), ask again, only for missing ranges.
void ReadRanges::tick(Time now) {
  if (now < deadline()) return;
  const Horizon h = *std::exchange(horizon_, std::nullopt);
  for (size_t i = 0; i < out_.size();) {
    Range& r = out_[i];
    if (r.order > h.order) break;
    const uint32_t limit = r.order < h.order ? r.end : std::min(h.offset, r.end);
    const size_t lost = lost_.size();
    const bool gone = split(r, limit);
    if (lost_.size() > lost) ++r.read->attempt;
    if (gone) {
      out_.erase(out_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

bool ReadRanges::split(Range& range, uint32_t limit) {
  PendingRead& read = *range.read;
  const uint32_t before = range.end - range.begin;
  const auto lose = [&](uint32_t begin, uint32_t end) {
    lost_.push_back({.read = &read, .begin = begin, .end = end, .first_time = false});
  };
  if (read.stride == 0 || read.length == 0) {
    // Nothing of it has come.
    if (lost_.size() >= kMostReRequests || limit < range.end) return false;
    lose(range.begin, range.end);
    bytes_out_ -= before;
    return true;
  }
  const uint32_t stride = read.stride;
  const auto until = static_cast<uint32_t>((uint64_t{limit} + stride - 1) / stride);
  uint32_t at = range.begin / stride;
  while ((at = read.came.next_missing(at, until)) < until && lost_.size() < kMostReRequests) {
    const uint32_t end = read.came.next_present(at, until);
    lose(std::max(at * stride, range.begin),
         static_cast<uint32_t>(std::min<uint64_t>(uint64_t{end} * stride, limit)));
    at = end;
  }
  const auto rest = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{at} * stride, limit));
  range.begin = std::max(range.begin, rest);
  bytes_out_ -= before - (range.end - range.begin);
  return range.begin == range.end;
}

void ReadRanges::lose(PendingRead& read) {
  const size_t before = lost_.size();
  for (size_t i = 0; i < out_.size();) {
    if (out_[i].read == &read && split(out_[i], out_[i].end)) {
      out_.erase(out_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (lost_.size() > before) ++read.attempt;
}

bool ReadRanges::has(const std::vector<Range>& list, const PendingRead& read) {
  return std::any_of(list.begin(), list.end(), [&](const Range& r) { return r.read == &read; });
}

void ReadRanges::forget(const PendingRead& read) {
  for (const Range& r : out_) {
    if (r.read == &read) bytes_out_ -= r.end - r.begin;
  }
  const auto of_read = [&read](const Range& r) { return r.read == &read; };
  std::erase_if(out_, of_read);
  std::erase_if(lost_, of_read);
}

void ReadRanges::clear() {
  out_.clear();
  lost_.clear();
  bytes_out_ = 0;
  horizon_.reset();
}

}  // namespace weft::wdp
