// The clock that Time (time.h) is told by outside of the simulator: the kernel's that never goes
// back.
#pragma once

#include <ctime>

#include "base/time.h"

namespace weft {

inline Time monotonic_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Time::from_ns(t.tv_sec * 1'000'000'000LL + t.tv_nsec);
}

}  // namespace weft
