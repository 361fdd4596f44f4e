// Which changes of mode a half connection allows (spec/sdp 5).
#pragma once

#include "sdp/wire/extended_headers.h"

namespace weft::sdp {

// The side of a half connection that sends a ModeChange.
enum class Changer : uint8_t { source, sink };

// All other changes end the connection.
bool mode_may_change(Mode from, Mode to, Changer by);

}  // namespace weft::sdp
