// The draws of base/draw.h under the simulator's name.
#pragma once

#include "base/draw.h"

namespace weft::sim {

using weft::draw_below;
using weft::draw_chance;
using weft::draw_size;
using weft::draw_up_to;

}  // namespace weft::sim
