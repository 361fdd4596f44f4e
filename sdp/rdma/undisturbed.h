// Work that a call of the program does for other connections, often while it lets go of a lock: the
// call keeps its errno, and neither a handler of a signal nor a cancellation leaves the middle of
// it, where locks would stay locked.
#pragma once

#include <cerrno>

#include "sdp/loop/handlers.h"

namespace weft::sdp {

class Undisturbed {
 public:
  Undisturbed() = default;
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() { errno = error_; }

 private:
  const HoldHandlers hold_;
  const int error_ = errno;
};

}  // namespace weft::sdp
