#include "sdp/preload/urgent.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/kept_errno.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"
#include "sdp/sockets/urgent_shown.h"

namespace weft::sdp {
namespace {

constexpr short kReadable = POLLIN | POLLRDNORM;

short set_if(short events, short which, bool set) {
  return static_cast<short>(set ? events | which : events & ~which);
}

}  // namespace

bool urgent_waits_for(const pollfd* fds, nfds_t count) {
  bool any = false;
  for (nfds_t i = 0; i < count; ++i) {
    if ((fds[i].events & POLLPRI) == 0) continue;
    const auto stream = Table::find(fds[i].fd);
    any |= stream && stream->waiting().urgent_waits_for_poll();
  }
  return any;
}

int with_urgent_polled(pollfd* fds, nfds_t count, int n, const Handlers::Ran& ran) {
  if (n < 0 || !UrgentShown::any()) return n;
  for (nfds_t i = 0; i < count; ++i) {
    const auto stream = Table::find(fds[i].fd);
    const auto polled = stream ? stream->urgent().polled(fds[i].fd) : std::nullopt;
    if (!polled) continue;
    short& said = fds[i].revents;
    if (!polled->readable) said = set_if(said, kReadable, false);
    const bool urgent = polled->urgent || (ran.any() && (said & POLLPRI) != 0);
    said = set_if(said, POLLPRI, urgent && (fds[i].events & POLLPRI) != 0);
  }
  const auto ready = [](const pollfd& p) { return p.revents != 0; };
  return static_cast<int>(std::count_if(fds, fds + count, ready));
}

int with_urgent_merged(epoll_event* events, int n) {
  if (n < 2 || !UrgentShown::any()) return n;
  epoll_event* end = events + n;
  for (epoll_event* one = events; one != end;) {
    const auto other = std::find_if(events, end, [one](const epoll_event& e) {
      return &e != one && e.data.u64 == one->data.u64;
    });
    if (one->events != EPOLLPRI || other == end) {
      ++one;
      continue;
    }
    other->events |= EPOLLPRI;
    std::copy(one + 1, end, one);
    --end;
  }
  return static_cast<int>(end - events);
}

}  // namespace weft::sdp

using weft::sdp::Table;

// libc's asks the kernel without the library's ioctl.
WEFT_SDP_EXPORT int sockatmark(int fd) noexcept {
  const auto stream = Table::find(fd);
  std::optional<bool> at_mark;
  if (stream) {
    const weft::SameErrno same;
    at_mark = stream->urgent().at_mark();
  }
  return at_mark ? static_cast<int>(*at_mark) : WEFT_SDP_NEXT(sockatmark)(fd);
}
