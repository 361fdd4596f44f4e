// How fast the answers to Reads come, by which the wait for more of them is as long as what is
// under way takes (spec/wdp-uc 5.5).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace weft::wdp {

class AnswerRate {
 public:
  // Nothing was under way, and something is asked for now.
  void begin(Time now) {
    bytes_ = 0;
    since_ = now;
  }
  void came(uint32_t bytes, Time now) {
    constexpr uint64_t kEnough = 128 * 1024;
    bytes_ += bytes;
    if (bytes_ < kEnough || now <= since_) return;
    const double rate = static_cast<double>(bytes_) / static_cast<double>((now - since_).count());
    bytes_per_ns_ = (bytes_per_ns_ * 3 + rate) / 4;
    begin(now);
  }
  // So long so many bytes take, and `most` at most.
  Duration of(uint64_t bytes, Duration most) const {
    const double ns = static_cast<double>(bytes) / bytes_per_ns_;
    return std::min(Duration{static_cast<int64_t>(ns)}, most);
  }

 private:
  double bytes_per_ns_ = 0.0125;  // 100 Mb/s before any have come
  uint64_t bytes_ = 0;
  Time since_ = Time::never();
};

}  // namespace weft::wdp
