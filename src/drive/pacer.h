// How fast a queue pair may put trains on the wire (option rate, and the static rate of an address
// handle; spec/wdp-uc 4.3). A sender that comes late to its turn, because a timer does, may catch
// up for a moment, so that the mean is kept.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"

namespace weft::drive {

// One for each sender. Value type; engine holder only.
class Pacer {
 public:
  // 0: as fast as can be.
  explicit Pacer(double gbps) : ns_per_byte_(per_byte(gbps)) {}

  // When the next train may leave, and how large it is to be at most: what goes in a millisecond,
  // or a datagram.
  Time next() const { return next_; }
  size_t most() const {
    return ns_per_byte_ * 100'000 < 1e6 ? 100'000 : static_cast<size_t>(1e6 / ns_per_byte_);
  }
  // False where next() has always passed: the clock need not be asked.
  bool waits() const { return next_ != Time{}; }
  bool paces(double path_gbps) const { return ns_per_byte_ > 0 || path_gbps > 0; }
  // `path_gbps`: of the way that the train took, where that is slower.
  void sent(size_t bytes, Time now, double path_gbps = 0) {
    const double each = std::max(ns_per_byte_, per_byte(path_gbps));
    if (each == 0) return;
    const double cost = std::min(static_cast<double>(bytes) * each, kMostNs);
    next_ = std::max(next_, now - kCatchUp) + Duration{static_cast<int64_t>(cost)};
  }

 private:
  static constexpr Duration kCatchUp = std::chrono::milliseconds{1};
  static constexpr double kMostNs = 3600e9;  // an hour
  static constexpr double per_byte(double gbps) { return gbps > 0 ? 8 / gbps : 0; }
  const double ns_per_byte_;
  Time next_;
};

}  // namespace weft::drive
