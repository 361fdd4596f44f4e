// Work that a call of the program does for other connections, often while it lets go of a lock: the
// call keeps its errno, and neither a handler of a signal nor a cancellation leaves the middle of
// it, where locks would stay locked.
#pragma once

#include "base/kept_errno.h"
#include "sdp/loop/handlers.h"

namespace weft::sdp {

class Undisturbed {
  HoldHandlers hold_;
  SameErrno same_;
};

}  // namespace weft::sdp
