// A short message beside the data.
#pragma once

#include <cstdint>

namespace weft::bench {

// "This chunk is done", and the answer, which repeats it. As it is in memory: both sides are on one
// machine.
struct Note {
  uint64_t chunk = 0;  // counted from 0, the warm-up's too
  uint64_t last = 0;   // 1: of its phase
};

}  // namespace weft::bench
