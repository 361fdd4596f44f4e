#include "wdp/fixed_rate.h"

#include <algorithm>
#include <cmath>

namespace weft::wdp {

Duration FixedRate::pause(const Departure& datagram, Duration) const {
  const double ns = static_cast<double>(datagram.bytes) * ns_per_byte_;
  // At 1000 Gb/s a datagram takes some 10 ns: rounding is most of the error.
  return Duration{std::llround(std::min(ns, static_cast<double>(kMostPause.count())))};
}

}  // namespace weft::wdp
