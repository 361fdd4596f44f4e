#include "sdp/preload/left_open.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/kept_errno.h"
#include "sdp/loop/own_descriptors.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/table.h"

using weft::SameErrno;
using weft::sdp::EpollSet;
using weft::sdp::OwnDescriptors;

namespace {

int made(int fd, bool for_program) {
  const SameErrno same;
  if (!for_program) OwnDescriptors::add(fd);
  return fd;
}

// A new epoll's number may have been another one's, which was closed in a way that nobody saw.
int anew(int epoll) {
  const SameErrno same;
  if (epoll >= 0) EpollSet::end(epoll);
  return epoll;
}

bool copies_upwards(long command) {
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

}  // namespace

bool weft::sdp::is_left_open(int fd) {
  if (!OwnDescriptors::has(fd) || Table::in_borrowed_memory()) return false;
  errno = EBADF;
  return true;
}

int weft::sdp::close_others(unsigned first, unsigned last, int flags) {
  auto* const next = WEFT_SDP_NEXT(close_range);
  const auto next_own = [borrowed = Table::in_borrowed_memory()](unsigned from) {
    return borrowed ? OwnDescriptors::kMost : OwnDescriptors::next(from);
  };
  // An empty range is an error.
  if (first > last) return next(first, last, flags);
  for (unsigned own = 0; (own = next_own(first)) <= last && own < OwnDescriptors::kMost;) {
    if (own > first && next(first, own - 1, flags) != 0) return -1;
    if (own == last) return 0;
    first = own + 1;
  }
  return next(first, last, flags);
}

bool weft::sdp::makes_or_ends_descriptor(long number) {
  switch (number) {
    case SYS_socket:
    case SYS_accept4:
    case SYS_openat:
    case SYS_fcntl:
    case SYS_close:
      return true;
    default:
      return false;
  }
}

void weft::sdp::before_call_of_adapter(long number, long first) {
  if (number == SYS_close) OwnDescriptors::drop(static_cast<int>(first));
}

void weft::sdp::after_call_of_adapter(long number, long second, long result) {
  if (number == SYS_close || (number == SYS_fcntl && !copies_upwards(second))) return;
  (void)made(static_cast<int>(result), false);
}

// What an adapter calls for descriptors that it keeps.

WEFT_SDP_EXPORT int eventfd(unsigned count, int flags) noexcept {
  return made(WEFT_SDP_NEXT(eventfd)(count, flags), WEFT_SDP_FOR_PROGRAM);
}

WEFT_SDP_EXPORT int epoll_create1(int flags) noexcept {
  return anew(made(WEFT_SDP_NEXT(epoll_create1)(flags), WEFT_SDP_FOR_PROGRAM));
}

WEFT_SDP_EXPORT int epoll_create(int size) noexcept {
  return anew(made(WEFT_SDP_NEXT(epoll_create)(size), WEFT_SDP_FOR_PROGRAM));
}

WEFT_SDP_EXPORT int pipe2(int* ends, int flags) noexcept {
  const bool for_program = WEFT_SDP_FOR_PROGRAM;
  if (WEFT_SDP_NEXT(pipe2)(ends, flags) != 0) return -1;
  (void)made(ends[0], for_program);
  (void)made(ends[1], for_program);
  return 0;
}

WEFT_SDP_EXPORT int timerfd_create(clockid_t clock, int flags) noexcept {
  return made(WEFT_SDP_NEXT(timerfd_create)(clock, flags), WEFT_SDP_FOR_PROGRAM);
}
