// Whether TCP segments of a size get through in one direction. Each is tested on a connection of
// its own: a segment that vanishes is retransmitted for ever, and nothing behind it arrives.
#pragma once

#include <vector>

#include "doctor/client.h"
#include "doctor/path_facts.h"

namespace weft::doctor {

// Tests full segments and, if these vanish, smaller ones. `hint`: an IP packet that is
// likely to pass, or 0. Throws kit::Failure.
SegmentFacts test_segments(Client& client, const port::Address& to, Direction direction,
                           uint32_t hint);

}  // namespace weft::doctor
