// One of the two processes that a case runs in.
#pragma once

#include "bench/channel.h"

namespace weft::bench {

// Hears its order on `control`, carries it out together with the side at the other end of `peer`,
// and reports a SideResult, or {"error": sentence}, on `control`. The process's exit status.
int run_side(Channel control, Channel peer);

}  // namespace weft::bench
