#include "stream/output/rotation_clock.h"

namespace weft::stream {

bool RotationClock::turns(uint32_t stream, int64_t ns) {
  const int64_t period = ns / period_ns_;
  bool turns = false;
  if (!leader_ || *leader_ == stream) {
    // A clock that was set back begins no file by that.
    turns = !period_ || period > *period_;
  } else {
    Other& other = others_[stream];
    if (other.since != blocks_) other = {.since = blocks_, .period = period, .crossings = 0};
    if (period > other.period) {
      other.period = period;
      ++other.crossings;
    }
    if (other.crossings < kPatience) return false;
    turns = true;
  }
  leader_ = stream;
  period_ = period;
  ++blocks_;
  return turns;
}

void RotationClock::over(uint32_t stream) {
  if (leader_ == stream) leader_.reset();
}

}  // namespace weft::stream
