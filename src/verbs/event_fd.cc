#include "verbs/event_fd.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>

#include "port/calls.h"

namespace weft::verbs {

// Blocking from the program's point of view until it says otherwise.
EventFd::EventFd()
    : units_(port::raise(port::Fd{::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)})),
      shown_(units_.valid() ? ::epoll_create1(EPOLL_CLOEXEC) : -1) {
  epoll_event readable{};
  readable.events = EPOLLIN;
  if (shown_.valid() && ::epoll_ctl(shown_.get(), EPOLL_CTL_ADD, units_.get(), &readable) != 0) {
    const int error = errno;
    shown_.reset();
    errno = error;
  }
}

void EventFd::close() {
  shown_.reset();
  units_.reset();
}

void EventFd::signal() const {
  while (port::calls::write_word(units_.get(), 1) < 0 && errno == EINTR) {
  }
}

void EventFd::take() const {
  uint64_t value = 0;
  while (port::calls::read_word(units_.get(), value) < 0) {
    if (errno == EAGAIN) {
      port::calls::wait_readable(units_.get());
    } else if (errno != EINTR) {
      return;
    }
  }
}

bool EventFd::nonblocking() const {
  const int flags = ::fcntl(shown_.get(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

}  // namespace weft::verbs
