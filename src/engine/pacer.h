// How fast a queue pair may put trains on the wire (option rate; wire.md 9.2, "Pacing"). Whoever
// comes late to its turn, because a timer does, may catch up for a moment, so that the mean is
// kept.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"

namespace weft::engine {

// One for each sender. Value type; engine holder only.
class Pacer {
 public:
  // 0: as fast as can be.
  explicit Pacer(double gbps) : ns_per_byte_(gbps > 0 ? 8 / gbps : 0) {}

  // When the next train may leave.
  Time next() const { return next_; }
  void sent(size_t bytes, Time now) {
    if (ns_per_byte_ == 0) return;
    const auto cost = static_cast<int64_t>(static_cast<double>(bytes) * ns_per_byte_);
    next_ = std::max(next_, now - kCatchUp) + Duration{cost};
  }

 private:
  static constexpr Duration kCatchUp = std::chrono::milliseconds{1};
  const double ns_per_byte_;
  Time next_;
};

}  // namespace weft::engine
