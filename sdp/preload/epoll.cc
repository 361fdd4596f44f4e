// epoll(7). It does what libc's does, and is told of connections without the kernel where that need
// not know (sdp/sockets/epoll_set.h).
#include <sys/epoll.h>

#include <cerrno>
#include <optional>

#include "base/guarded.h"
#include "base/kept_errno.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/look_and_wait.h"
#include "sdp/preload/memory.h"
#include "sdp/preload/next.h"
#include "sdp/preload/urgent.h"
#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/listeners.h"
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"
#include "sdp/sockets/urgent_shown.h"
#include "sdp/sockets/zero_copy.h"

using namespace weft::sdp;
using weft::keeping_errno;
using weft::SameErrno;

namespace {

// An epoll that waits for a connection waits for its reports, too, under the same word.
void register_reports(int epoll, int operation, int fd, const epoll_event* event) {
  if (!ZeroCopy::any()) return;
  const auto stream = Table::find(fd);
  const int at = stream ? stream->sending().reports_at() : -1;
  if (at < 0) return;
  const SameErrno same;
  epoll_event own{};
  if (event != nullptr) {
    own.data = event->data;
    own.events = event->events & (EPOLLET | EPOLLONESHOT);
  }
  auto* const control = WEFT_SDP_NEXT(epoll_ctl);
  if (control(epoll, operation, at, &own) != 0 && operation != EPOLL_CTL_DEL) {
    (void)control(epoll, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, at, &own);
  }
}

void note_registered(int epoll, int operation, int fd, const epoll_event* event) {
  Registrations::note(epoll, operation, fd, event);
  if (const auto stream = Table::find(fd)) {
    stream->waiting().registered(epoll, operation, fd, event);
  }
  register_reports(epoll, operation, fd, event);
}

// Whether it is a connection.
bool epoll_is_to_wait(int fd) {
  if (Listeners::any_fresh()) (void)if_memory([fd] { Listeners::about_to_wait(fd); });
  const auto stream = Table::find(fd);
  if (stream) stream->waiting().about_to_wait(fd);
  return stream != nullptr;
}

// What a call on a connection comes to that the kernel need not know of yet. Else the caller asks
// the kernel, and says the end of that.
std::optional<int> control_later(Stream& stream, int epoll, int operation, int fd,
                                 const epoll_event* event) {
  guard_memory();
  epoll_event asked{};
  const bool readable =
      operation == EPOLL_CTL_DEL || weft::copy_guarded(&asked, event, sizeof asked);
  // Reports and urgent data have descriptors of their own in the epoll.
  const bool may_wait = readable && !ZeroCopy::any() && !UrgentShown::any();
  return stream.waiting().control(may_wait ? EpollSet::find(epoll) : nullptr, operation, fd, asked);
}

int control_now(int epoll, int operation, int fd, epoll_event* event) {
  if (operation != EPOLL_CTL_DEL && epoll_is_to_wait(fd)) Registrations::note_connection(epoll);
  const int status = WEFT_SDP_NEXT(epoll_ctl)(epoll, operation, fd, event);
  if (status == 0) EpollSet::make_plain(fd);
  if (status != 0 || if_memory([=] { note_registered(epoll, operation, fd, event); }))
    return status;
  if (operation == EPOLL_CTL_ADD) (void)WEFT_SDP_NEXT(epoll_ctl)(epoll, EPOLL_CTL_DEL, fd, nullptr);
  errno = ENOMEM;
  return -1;
}

// `now` is libc's call, which does not wait where it is told true.
template <class Now>
int wait_for_events(int epoll, epoll_event* events, int most, bool program, bool waits, Now now) {
  const bool connections = Registrations::waits_for_connections(epoll);
  EpollSet* const set = program && most > 0 ? EpollSet::find(epoll) : nullptr;
  if (set == nullptr) {
    const auto wait = [&](bool at_once) { return with_urgent_merged(events, now(at_once)); };
    return look_and_wait(waits && program, connections, wait);
  }
  set->asked();
  // What is no connection may wait for a moment while connections have news, but for a call that
  // does not wait, which tells of all that there is.
  const auto wait = [&](bool at_once) {
    if (at_once && waits && set->has_news() && !set->kernel_is_due()) {
      if (const int n = set->collect(events, most, 0); n != 0) return n;
    }
    std::optional<EpollSet::Asleep> asleep;
    if (waits && !at_once) asleep.emplace(*set);
    const int n = set->from_kernel(events, with_urgent_merged(events, now(at_once)));
    return asleep || n < 0 ? n : set->collect(events, most, n);
  };
  Recent::take();
  if (set->has_news() || !waits) {
    if (const int n = keeping_errno([&] { return wait(true); }); n != 0 || !waits) return n;
  }
  return look_and_wait(waits, connections, wait);
}

}  // namespace

WEFT_SDP_EXPORT int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  const auto now = [&](bool at_once) {
    return WEFT_SDP_NEXT(epoll_wait)(epoll, events, most, at_once ? 0 : timeout);
  };
  return wait_for_events(epoll, events, most, WEFT_SDP_FOR_PROGRAM, timeout != 0, now);
}

WEFT_SDP_EXPORT int epoll_pwait(int epoll, epoll_event* events, int most, int timeout,
                                const sigset_t* mask) {
  const auto now = [&](bool at_once) {
    return WEFT_SDP_NEXT(epoll_pwait)(epoll, events, most, at_once ? 0 : timeout, mask);
  };
  return wait_for_events(epoll, events, most, WEFT_SDP_FOR_PROGRAM, timeout != 0, now);
}

WEFT_SDP_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout,
                                 const sigset_t* mask) {
  const auto now = [&](bool at_once) {
    return WEFT_SDP_NEXT(epoll_pwait2)(epoll, events, most, at_once ? &kAtOnce : timeout, mask);
  };
  return wait_for_events(epoll, events, most, WEFT_SDP_FOR_PROGRAM, waits_for_some_time(timeout),
                         now);
}

WEFT_SDP_EXPORT int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (!WEFT_SDP_FOR_PROGRAM) return WEFT_SDP_NEXT(epoll_ctl)(epoll, operation, fd, event);
  return keeping_errno([=] {
    const auto stream = Table::find(fd);
    if (!stream) return control_now(epoll, operation, fd, event);
    if (const auto status = control_later(*stream, epoll, operation, fd, event)) return *status;
    const int status = control_now(epoll, operation, fd, event);
    stream->waiting().control_ended();
    return status;
  });
}
