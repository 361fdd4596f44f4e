// What poll(2), select(2) and epoll_wait(2) say of urgent data of connections. Their mirrors alone
// would say that an urgent byte is something to read.
#pragma once

#include <poll.h>
#include <sys/epoll.h>

#include "sdp/loop/handlers.h"

namespace weft::sdp {

// Before such a call: whether urgent data is there that it asks for.
bool urgent_waits_for(const pollfd* fds, nfds_t count);
// `n`: what the call came to, of which the mirrors' own part is set right. `ran`: since before the
// call. A handler may have read the byte that the call has seen.
int with_urgent_polled(pollfd* fds, nfds_t count, int n, const Handlers::Ran& ran);
// What is told of a connection by two events becomes one; how many there are then.
int with_urgent_merged(epoll_event* events, int n);

// Calls `call`, without a wait where it is told true, until there is something to tell of or the
// time is over. It returns what libc's function has said, and sets `told` to what is to be said.
template <class Waits, class Call>
int wait_with_urgent(bool at_once, Waits waits, Call call) {
  for (;;) {
    const Handlers::Ran ran;
    const bool now = at_once || waits();
    int told = 0;
    const int n = call(now, told, ran);
    if (told != 0 || at_once || (n == 0 && !now)) return told;
  }
}

}  // namespace weft::sdp
