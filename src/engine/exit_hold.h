// Holding an engine while the process exits.
#pragma once

#include <optional>

#include "engine/hold.h"

namespace weft::engine {

class Engine;

// Waits for a holder that lets go in a moment. Nothing where it does not: the thread that exits may
// be that holder, taken out of its turn by a signal.
std::optional<Hold> hold_at_exit(Engine& engine);

}  // namespace weft::engine
