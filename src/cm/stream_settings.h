// The settings of a stream that come from the start-up and the options.
#pragma once

#include "rdmap/limits.h"

namespace weft::cm {

rdmap::StreamConfig stream_settings(const mpa::Parameters& parameters, bool initiator);

}  // namespace weft::cm
