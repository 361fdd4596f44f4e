// A TCP connection both of whose ends are in this process.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <utility>

#include "port/tcp_listener.h"

namespace weft::shared {

struct Connection {
  Connection() {
    auto l =
        port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0), 4);
    EXPECT_TRUE(l.ok());
    auto c = port::TcpStream::connect({}, l->local());
    EXPECT_TRUE(c.ok());
    pollfd p{.fd = l->fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, 20'000), 1);
    passive = std::move(*l->accept());
    active = std::move(*c);
  }
  port::TcpStream active;
  port::TcpStream passive;
};

}  // namespace weft::shared
