#include "verbs/event_fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace weft::verbs {

// Blocking from the program's point of view until it says otherwise; weft itself never blocks on
// it.
EventFd::EventFd() : fd_(port::Fd{::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)}) {}

void EventFd::signal() const {
  const uint64_t one = 1;
  while (::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void EventFd::take() const {
  uint64_t value;
  while (::read(fd_.get(), &value, sizeof value) < 0 && errno == EINTR) {
  }
}

bool EventFd::nonblocking() const {
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

}  // namespace weft::verbs
