// A channel whose peer has its sockets yet, and answers nothing: of the loopback, between two
// engines.

#include "drive/rd_link.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include "engine/engine.h"
#include "port/udp_bind.h"
#include "port/udp_socket.h"

namespace weft::drive {
namespace {

using engine::Engine;
using engine::Hold;

constexpr Gid kLoopback = Gid::from_ipv4(INADDR_LOOPBACK);

// One end, with channels at its port.
struct LoopbackEnd {
  LoopbackEnd(uint32_t number, port::Fd udp) {
    auto e = Engine::create(number);
    EXPECT_TRUE(e.ok());
    engine = std::move(*e);
    at = port::Address::of_socket(udp.get());
    Hold h = engine->hold();
    driver = &DatagramDriver::start(
        h.token(), nobody,
        std::make_unique<port::UdpSocket>(std::move(udp), DatagramDriver::kBuffer));
    driver->enable_channels(at.port(), false);
  }

  DatagramOwner nobody;
  port::Address at;
  std::unique_ptr<Engine> engine;
  DatagramDriver* driver = nullptr;
};

// A TCP port where the test listens.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const port::Address any = port::Address::from_gid(kLoopback, 0);
    const timeval patience{20, 0};
    EXPECT_EQ(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    EXPECT_EQ(::bind(fd_.get(), any.get(), any.length), 0);
    EXPECT_EQ(::listen(fd_.get(), 8), 0);
  }
  port::Address at() const { return port::Address::of_socket(fd_.get()); }
  bool accepts() const { return port::Fd{::accept(fd_.get(), nullptr, nullptr)}.valid(); }

 private:
  port::Fd fd_;
};

port::Fd udp_at(const port::Address& at) {
  auto udp = port::bind_udp(at);
  EXPECT_TRUE(udp.ok());
  return std::move(*udp);
}

// spec/wdp-rd 5.3: its kernel may be allowed no ICMP. This one sends none, for the port is there.
TEST(RdLink, APeerThatIsSilentForLongIsAskedForByTcp) {
  const Listener tcp;
  LoopbackEnd a{0, udp_at(port::Address::from_gid(kLoopback, 0))};
  LoopbackEnd b{1, udp_at(tcp.at())};
  const wdp::Path path{.to = {.address = kLoopback, .port = b.at.port()}, .from = kLoopback};
  {
    Hold h = a.engine->hold();
    a.driver->open_channel(h.token(), path);
    a.driver->settle(h.token());
  }
  const auto channel = [&] { return a.driver->wdp_socket().channels().find(path); };
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  const auto open = [&] {
    Hold h = a.engine->hold();
    return channel() != nullptr && channel()->state() == wdp::RdChannel::State::open;
  };
  while (!open() && std::chrono::steady_clock::now() < give_up) {
    a.engine->progress();
    b.engine->progress();
  }
  ASSERT_TRUE(open());
  const Hold silent = b.engine->hold();
  {
    Hold h = a.engine->hold();
    std::byte* const at =
        channel()->out().send({.sidx = 3, .didx = 5, .length = 100}, wdp::kNoClient, 1);
    for (size_t i = 0; i < 100; ++i) at[i] = static_cast<std::byte>(i);
    a.driver->settle(h.token());
  }
  EXPECT_TRUE(tcp.accepts());
}

}  // namespace
}  // namespace weft::drive
