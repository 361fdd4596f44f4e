#include "wdp/handshake_tries.h"

namespace weft::wdp {

void HandshakeTries::begin(Time now) {
  pauses_ = kHandshakeTries;
  try_ = 0;
  since_ = now;
  next_ = now + kHandshakeTries[1];
  fails_ = now + kHandshakeFails;
}

void HandshakeTries::begin_rtu(Time now) {
  pauses_ = kRtuTries;
  try_ = 0;
  since_ = now;
  next_ = now + kRtuTries[1];
  fails_ = Time::never();
}

// "WAIT pushes the next try and the deadline."
void HandshakeTries::wait(Time now, Duration more) {
  if (waits_until_.is_never()) waits_until_ = now + kMostWaiting;
  begin(now + more);
  next_ = now + more;
  fails_ = std::min(fails_, waits_until_);
}

void HandshakeTries::resume(Time now) {
  if (next_.is_never()) next_ = now + kHandshakeTries[1];
}

void HandshakeTries::repeated(Time now) {
  // The first try that is not over yet.
  while (try_ < pauses_.size() && since_ + pauses_[try_] <= now) ++try_;
  next_ = try_ < pauses_.size() ? since_ + pauses_[try_] : Time::never();
}

}  // namespace weft::wdp
