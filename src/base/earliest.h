// The first of several times. std::min() of more than two has them in memory before it compares
// them, and a stream is asked for its deadline at each visit.
#pragma once

#include "base/time.h"

namespace weft {

constexpr Time earliest(Time a, Time b) {
  return b < a ? b : a;
}
template <class... Times>
constexpr Time earliest(Time a, Time b, Times... others) {
  return earliest(earliest(a, b), others...);
}

}  // namespace weft
