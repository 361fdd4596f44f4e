#include "verbs/event_fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>

#include "port/calls.h"

namespace weft::verbs {

// Blocking from the program's point of view until it says otherwise.
EventFd::EventFd() : fd_(port::Fd{::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)}) {}

void EventFd::signal() const {
  while (port::calls::write_word(fd_.get(), 1) < 0 && errno == EINTR) {
  }
}

void EventFd::take() const {
  uint64_t value = 0;
  while (port::calls::read_word(fd_.get(), value) < 0) {
    if (errno == EAGAIN) {
      port::calls::wait_readable(fd_.get());
    } else if (errno != EINTR) {
      return;
    }
  }
}

bool EventFd::nonblocking() const {
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

}  // namespace weft::verbs
