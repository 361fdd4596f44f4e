// The time of day, for what people and other programs read. The protocol goes by time.h alone.
#pragma once

#include <cstdint>
#include <ctime>

namespace weft {

// Nanoseconds since 1970.
inline int64_t wall_clock_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

}  // namespace weft
