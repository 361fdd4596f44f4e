// A thread in rpoll. Descriptors wake it, and so does another thread that has taken what would have
// woken it.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace weft::rsockets {

class Sleeper {
 public:
  Sleeper() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    if (fd_ >= 0) ::close(fd_);
  }

  int fd() const { return fd_; }  // -1 without descriptors
  // Any thread.
  void wake() const {
    const int before = errno;
    const uint64_t one = 1;
    (void)!::write(fd_, &one, sizeof one);  // full means that it is awake
    errno = before;
  }
  // It is awake.
  void clear() const {
    uint64_t count = 0;
    (void)!::read(fd_, &count, sizeof count);
  }

 private:
  int fd_;
};

}  // namespace weft::rsockets
