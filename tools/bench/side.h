// One of the two processes that a case runs in.
#pragma once

#include "bench/channel.h"

namespace weft::bench {

// What the initiator says on `control` when what is measured begins and ends:
// {"phase": "begins"}, {"phase": "ends"}.
inline constexpr const char* kPhase = "phase";
inline constexpr const char* kBegins = "begins";
inline constexpr const char* kEnds = "ends";

// Hears its order on `control`, carries it out together with the side at the other end of `peer`,
// and reports a SideResult, or {"error": sentence}, on `control`. The process's exit status.
int run_side(Channel control, Channel peer);

}  // namespace weft::bench
