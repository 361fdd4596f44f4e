// A connection whose start-up is done, and its peer's end, on one engine.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include "cm/started.h"
#include "engine/engine.h"
#include "port/tcp_listener.h"

namespace weft::cm {

class StartedTest : public testing::Test {
 protected:
  void SetUp() override {
    auto e = engine::Engine::create(0);
    ASSERT_TRUE(e.ok());
    engine_ = std::move(*e);
    const auto listener =
        port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 1);
    ASSERT_TRUE(listener.ok());
    auto tcp = port::TcpStream::connect({}, listener->local());
    ASSERT_TRUE(tcp.ok());
    pollfd p{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 10'000), 1);
    auto accepted = listener->accept();
    ASSERT_TRUE(accepted);
    peer_ = std::move(*accepted);
    started_.tcp = std::move(*tcp);
  }
  // Turns of the engine until it holds.
  template <class Condition>
  bool soon(Condition&& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    bool held = holds();
    for (; !held && std::chrono::steady_clock::now() < end; held = holds()) engine_->progress();
    return held;
  }
  // What the peer gets until its end.
  std::vector<std::byte> all_that_comes() {
    std::vector<std::byte> all;
    bool ended = false;
    EXPECT_TRUE(soon([&] {
      std::byte some[256];
      const IoVec room{some, sizeof some};
      const auto t = peer_.receive({&room, 1});
      if (!t.would_block && t.error == 0) all.insert(all.end(), some, some + t.bytes);
      ended = ended || t.end || t.error != 0;
      return ended;
    }));
    return all;
  }

  std::unique_ptr<engine::Engine> engine_;
  port::TcpStream peer_;
  Started started_;
};

}  // namespace weft::cm
