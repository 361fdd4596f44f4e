// Work that a call of the program does for other connections, often while it lets go of a lock: the
// call keeps its errno, and a cancelled thread ends later than in the middle of it, where locks
// would stay locked. For the same reason handlers of signals wait.
#pragma once

#include <pthread.h>

#include <cerrno>

#include "sdp/loop/handlers.h"

namespace weft::sdp {

class Undisturbed {
 public:
  Undisturbed() {
    Handlers::hold();
    (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() {
    errno = error_;
    (void)::pthread_setcancelstate(cancel_, nullptr);
    Handlers::let_go();
  }

 private:
  const int error_ = errno;
  int cancel_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace weft::sdp
