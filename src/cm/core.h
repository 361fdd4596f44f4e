// The whole adapter, put together.
#pragma once

#include "verbs/adapter.h"

namespace weft::cm {

// The adapter of this process, with the connection managers installed; verbs::Adapter::get() has
// the errors. Any thread. Throws std::bad_alloc.
Result<verbs::Adapter*, port::SystemError> adapter();

}  // namespace weft::cm
