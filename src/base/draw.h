// Draws from a Random: the few distributions that simulated links and injected faults need.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/time.h"

namespace weft {

// 0 .. n-1, for n > 0. The bias of the remainder is far below what a simulation could see.
inline uint64_t draw_below(Random& r, uint64_t n) {
  return r.next() % n;
}

// True with probability `p`. Draws in any case, so that a changed probability does not shift what
// comes after.
inline bool draw_chance(Random& r, double p) {
  return static_cast<double>(r.next() >> 11) * 0x1p-53 < p;
}

// 0 .. `most`, both included.
inline Duration draw_up_to(Random& r, Duration most) {
  return Duration{static_cast<int64_t>(draw_below(r, static_cast<uint64_t>(most.count()) + 1))};
}

// 1 .. `most`, small values as likely as large ones: each power of two gets the same share.
inline uint64_t draw_size(Random& r, uint64_t most) {
  uint64_t powers = 1;
  while (powers < 64 && uint64_t{1} << powers <= most) ++powers;
  const uint64_t bound = uint64_t{1} << draw_below(r, powers);
  return 1 + draw_below(r, bound < most ? bound : most);
}

}  // namespace weft
