// A UDP port of the loopback that is closed for all, and that nobody else can take meanwhile: its
// socket is connected to itself and hears nobody else. The kernel answers others by ICMP.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::test {

class ClosedPort {
 public:
  ClosedPort() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const any = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(::bind(fd_, any, size), 0);
    EXPECT_EQ(::getsockname(fd_, any, &size), 0);
    EXPECT_EQ(::connect(fd_, any, size), 0);
    number_ = ntohs(at.sin_port);
  }
  ~ClosedPort() { ::close(fd_); }
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;

  uint16_t number() const { return number_; }

 private:
  int fd_;
  uint16_t number_ = 0;
};

}  // namespace weft::test
