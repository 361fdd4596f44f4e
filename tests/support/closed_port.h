// UDP ports of the loopback where nobody answers, and that nobody else can take meanwhile.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::test {

// Open, and its socket is never read.
class SilentPort {
 public:
  SilentPort() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    name_.sin_family = AF_INET;
    name_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name_;
    EXPECT_EQ(::bind(fd_, address(), size), 0);
    EXPECT_EQ(::getsockname(fd_, address(), &size), 0);
  }
  ~SilentPort() { ::close(fd_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  int fd() const { return fd_; }
  uint16_t number() const { return ntohs(name_.sin_port); }

 protected:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&name_); }

 private:
  int fd_;
  sockaddr_in name_{};
};

// Closed for all: its socket is connected to itself and hears nobody else. The kernel answers
// others by ICMP.
class ClosedPort : public SilentPort {
 public:
  ClosedPort() { EXPECT_EQ(::connect(fd(), address(), sizeof(sockaddr_in)), 0); }
};

}  // namespace weft::test
