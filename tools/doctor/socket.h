// A socket that closes itself. For doctor's look at the machine; weft's own sockets are those of
// src/port.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

namespace weft::doctor {

class Socket {
 public:
  Socket(int family, int type) : fd_(::socket(family, type | SOCK_CLOEXEC, 0)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  // Negative when the kernel gave none.
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace weft::doctor
