// How long a turn of an engine may be, for whoever waits for the engine waits for its end.
#pragma once

#include <chrono>

#include "base/time.h"

namespace weft::engine {

inline constexpr Duration kTurnMost = std::chrono::microseconds{500};

}  // namespace weft::engine
