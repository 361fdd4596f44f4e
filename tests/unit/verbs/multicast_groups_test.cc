// A group's socket by itself: what is not lost to a want of memory.

#include "verbs/multicast_groups.h"

#include <gtest/gtest.h>

#include <chrono>

#include "engine/engine.h"
#include "port/udp_bind.h"
#include "port/udp_socket.h"
#include "tests/support/hex.h"

namespace weft::verbs {
namespace {

using engine::Engine;
using engine::Hold;

constexpr size_t kSmall = 2000;  // bytes of a socket's buffer

// The deadline that failed was the only one that counts what found no room.
TEST(GroupReceiver, CountsWhatFoundNoRoomThoughThereWasNoMemory) {
  const wdp::Endpoint group{
      Gid::from_ipv4(0xefff0000U + (static_cast<uint32_t>(::getpid()) & 0xffff)), 24'600};
  const port::Address at = port::Address::from_gid(group.address, group.port);
  auto made = Engine::create(0);
  ASSERT_TRUE(made.ok());
  const auto engine = std::move(*made);
  auto fd = port::bind_group(at, 0);
  ASSERT_TRUE(fd.ok());
  ASSERT_EQ(port::join_group(fd->get(), at, Gid::from_ipv4(INADDR_LOOPBACK), 0), 0);
  std::optional<GroupReceiver> receiver;
  {
    Hold h = engine->hold();
    receiver.emplace(h.token(), std::make_unique<port::UdpSocket>(std::move(*fd), kSmall), group);
    drive::DatagramDriver& driver = receiver->driver();
    // More than it has room for.
    const port::Fd sender{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const in_addr loopback{htonl(INADDR_LOOPBACK)};
    ASSERT_EQ(::setsockopt(sender.get(), IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback),
              0);
    const test::Buffer datagram = test::pattern(1000, 3);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(::sendto(sender.get(), datagram.data(), datagram.size(), 0, at.get(), at.length),
                static_cast<ssize_t>(datagram.size()));
    }
    driver.on_ready(h.token(), true, false);
    ASSERT_GT(engine->counters().datagrams_received.value(), 0U) << "some have come";
    // As the engine does: a deadline that has come is no more.
    engine->set_deadline(h.token(), driver, Time::never());
    driver.on_no_memory(h.token());
    ASSERT_EQ(engine->counters().socket_overruns.value(), 0U);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (engine->counters().socket_overruns.value() == 0 &&
         std::chrono::steady_clock::now() < end) {
    engine->progress();
  }
  EXPECT_GT(engine->counters().socket_overruns.value(), 0U);
  Hold h = engine->hold();
  receiver->close(h.token());
}

}  // namespace
}  // namespace weft::verbs
