// Which state may follow which, and which attributes go with it (InfiniBand 11.2.4.2, table 91).
// Pure.
#pragma once

#include <cstdint>

#include "verbs/types.h"

namespace weft::verbs {

// Is `mask` right for going from `from` to `to`? All that is required, nothing but what is required
// or optional.
bool transition_allowed(QpType type, QpState from, QpState to, uint32_t mask);

}  // namespace weft::verbs
