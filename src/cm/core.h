// The whole adapter, put together.
#pragma once

#include "verbs/adapter.h"

namespace weft::cm {

// The adapter of this process, with the connection managers installed. Made at the first call;
// nullptr when the system refuses what it takes (the log says what). Any thread.
verbs::Adapter* adapter();

}  // namespace weft::cm
