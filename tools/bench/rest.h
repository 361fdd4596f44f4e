// Doing nothing for a while.
#pragma once

#include <time.h>

#include <cerrno>
#include <cstdint>

namespace weft::bench {

// ns after the last traffic, for what was put off and for the deadlines of the bring-up, of up to a
// second, which run out without effect.
inline constexpr int64_t kSettle = 1'200'000'000;

inline void sleep_ns(int64_t ns) {
  timespec left{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

}  // namespace weft::bench
