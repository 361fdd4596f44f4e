// Calls that wait for a listener, among others: the library hears SDP for it from then on. They do
// what libc's do.
#include <dlfcn.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "sdp/preload/caller.h"
#include "sdp/sockets/listeners.h"

using namespace weft::sdp;

namespace {

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

void about_to_poll(const pollfd* fds, nfds_t count) {
  if (!Listeners::any_fresh()) return;
  for (nfds_t i = 0; i < count; ++i) {
    if ((fds[i].events & POLLIN) != 0) Listeners::about_to_wait(fds[i].fd);
  }
}

void about_to_select(int count, const fd_set* readable) {
  if (!Listeners::any_fresh() || readable == nullptr) return;
  for (int fd = 0; fd < count && fd < FD_SETSIZE; ++fd) {
    if (FD_ISSET(fd, readable)) Listeners::about_to_wait(fd);
  }
}

}  // namespace

WEFT_SDP_EXPORT int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  static const auto function = next<int (*)(int, int, int, epoll_event*)>("epoll_ctl");
  if (operation == EPOLL_CTL_ADD) Listeners::about_to_wait(fd);
  return function(epoll, operation, fd, event);
}

WEFT_SDP_EXPORT int poll(pollfd* fds, nfds_t count, int timeout) {
  static const auto function = next<int (*)(pollfd*, nfds_t, int)>("poll");
  about_to_poll(fds, count);
  return function(fds, count, timeout);
}

WEFT_SDP_EXPORT int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t size) {
  static const auto function = next<int (*)(pollfd*, nfds_t, int, size_t)>("__poll_chk");
  about_to_poll(fds, count);
  return function(fds, count, timeout, size);
}

WEFT_SDP_EXPORT int ppoll(pollfd* fds, nfds_t count, const timespec* timeout,
                          const sigset_t* mask) {
  static const auto function =
      next<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
  about_to_poll(fds, count);
  return function(fds, count, timeout, mask);
}

WEFT_SDP_EXPORT int select(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                           timeval* timeout) {
  static const auto function = next<int (*)(int, fd_set*, fd_set*, fd_set*, timeval*)>("select");
  about_to_select(count, readable);
  return function(count, readable, writable, exceptional, timeout);
}

WEFT_SDP_EXPORT int pselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                            const timespec* timeout, const sigset_t* mask) {
  static const auto function =
      next<int (*)(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>("pselect");
  about_to_select(count, readable);
  return function(count, readable, writable, exceptional, timeout, mask);
}
