// Whether TCP segments of a size get through, one way: each on a connection of its own, for a
// segment that vanishes is sent again for ever, and nothing behind it arrives.
#pragma once

#include <vector>

#include "doctor/consultation.h"
#include "doctor/path_facts.h"

namespace weft::doctor {

// Finds out about full segments and, where these vanish, which do not. `hint`: an IP packet that is
// likely to pass, or 0. Throws kit::Failure.
SegmentFacts try_segments(Consultation& consultation, const port::Address& to, Way way,
                          uint32_t hint);

}  // namespace weft::doctor
