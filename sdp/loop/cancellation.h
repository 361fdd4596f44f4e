// A thread that is cancelled (pthread_cancel) ends later than in what follows: in a call that is no
// cancellation point, or behind something that would be lost. Locks of the library's do the same
// (handlers.h).
#pragma once

#include <pthread.h>

namespace weft::sdp {

class HoldCancellation {
 public:
  HoldCancellation() { (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  HoldCancellation(const HoldCancellation&) = delete;
  HoldCancellation& operator=(const HoldCancellation&) = delete;
  ~HoldCancellation() { (void)::pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace weft::sdp
