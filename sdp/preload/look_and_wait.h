// What a call that waits for several descriptors does before it sleeps.
#pragma once

#include <cerrno>
#include <ctime>

#include "base/kept_errno.h"
#include "sdp/loop/handlers.h"
#include "sdp/sockets/recent.h"

namespace weft::sdp {

// Timeouts of ppoll(2) and its like.
inline constexpr timespec kAtOnce{};
inline bool waits_for_some_time(const timespec* timeout) {
  return timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_nsec != 0;
}

// Waits as `wait_now(false)` does, which does not wait at all where it is told true. A thread that
// works on connections looks before it sleeps; one that only waits for some, `for_connections`,
// says that it sleeps.
template <class Wait>
int look_and_wait(bool waits, bool for_connections, Wait wait_now) {
  return keeping_errno([&] {
    const bool looks = waits && Recent::any();
    if (!looks && !(waits && for_connections && Recent::any_of_process())) return wait_now(false);
    const Handlers::Ran ran;
    int n = 0;
    const auto others = [&] { return (n = wait_now(true)) != 0; };
    if (looks && Recent::look(others) && (n != 0 || others())) return n;
    // The kernel's call ends with each handler, and would not know of one that has run by now.
    if (ran.any()) {
      errno = EINTR;
      return -1;
    }
    const Recent::Sleep sleep;
    return wait_now(false);
  });
}

}  // namespace weft::sdp
