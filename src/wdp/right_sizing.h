// Whether a receiver's window is what holds its sender back, and the round trip is the reason
// (spec/wdp-rd 4.5). What lies beyond a window that the peer is told of comes a round trip later at
// the earliest; if it comes no later than that, the sender has waited for the word.
//
//   told(): edge ──── a round trip ────► came(): beyond the edge
#pragma once

#include <algorithm>
#include <cstdint>

#include "wdp/rd_limits.h"

namespace weft::wdp {

// Of one channel's receiver. A value type. Not thread-safe.
class RightSizing {
 public:
  // The round trip is no longer than this, as somebody else has found.
  void met(Duration trip) { trip_ = std::min(trip_, trip); }
  // The peer was told of a window of so many bytes beyond what has come.
  void told(size_t window, Time now) {
    if (!since_.is_never()) return;
    since_ = now;
    edge_ = came_ + window;
    farthest_ = std::max(farthest_, edge_);
  }
  // So many more have come. True: with a larger window more would have.
  bool came(size_t bytes, Time now) {
    came_ += bytes;
    if (since_.is_never() || came_ <= edge_) return false;
    const Duration took = now - since_;
    since_ = Time::never();
    // A peer that has not heard yet of a smaller window waits for nothing.
    if (came_ > farthest_) met(took);
    // What comes at once on a short path waits in the socket, where a larger window has no place.
    return !is_short() && took <= trip_ + trip_ / 3;
  }
  bool is_short() const { return trip_ < kLongTrip; }
  // At most.
  Duration trip() const { return trip_; }

 private:
  Duration trip_ = Duration::max();
  uint64_t came_ = 0;
  uint64_t edge_ = 0;
  uint64_t farthest_ = 0;  // that the peer was told of
  Time since_ = Time::never();
};

}  // namespace weft::wdp
