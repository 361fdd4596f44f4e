// Round-trip time of a session, smoothed: handshake, keepalives and Reads give the samples.
#pragma once

#include <algorithm>

#include "wdp/limits.h"

namespace weft::wdp {

class Rtt {
 public:
  // `first` is a guess: a handshake may have waited for an application. The first sample replaces
  // it.
  explicit Rtt(Duration first) : smoothed_(first) {}
  void sample(Duration d) {
    d = std::max(d, Duration{1});
    smoothed_ = sampled_ ? (smoothed_ * 7 + d) / 8 : d;
    sampled_ = true;
  }
  bool known() const { return smoothed_ > Duration{0}; }
  Duration smoothed() const { return smoothed_; }
  // spec/wdp-uc 5.5: clamp(4*SRTT, 10 ms, 1 s). Before anything is known: 10 times the least.
  Duration read_timeout() const {
    if (!known()) return kLeastReadTimeout * 10;
    return std::clamp(smoothed_ * 4, kLeastReadTimeout, kMostReadTimeout);
  }

 private:
  Duration smoothed_;
  bool sampled_ = false;
};

}  // namespace weft::wdp
