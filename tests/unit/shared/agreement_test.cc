#include "shared/agreement.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "port/tcp_listener.h"

namespace weft::shared {
namespace {

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

TEST(Agreement, BothEndsOnOneHostMay) {
  const Connection c;
  EXPECT_TRUE(may_share(c.active));
  EXPECT_TRUE(may_share(c.passive));
}

TEST(Agreement, WhatIsDisturbedOnPurposeStaysWithTcp) {
  Connection c;
  FaultSpec faults;
  faults.split = 0.5;
  c.active.inject(faults);
  EXPECT_FALSE(may_share(c.active));
  EXPECT_TRUE(may_share(c.passive));
}

TEST(Agreement, AConnectionThatIsGoneMayNot) {
  port::TcpStream none;
  EXPECT_FALSE(may_share(none));
}

TEST(Agreement, BothSocketsAreInOneNamespace) {
  const Connection c;
  stats::EngineCounters counters;
  auto o = offer(c.passive, counters);
  ASSERT_TRUE(o);
  EXPECT_NE(o->offer.network_namespace, 0U);
  EXPECT_TRUE(take(o->offer, c.active, counters));
  EXPECT_TRUE(o->segment.joined());
}

TEST(Agreement, TheAnswerIsOneByte) {
  for (const bool takes : {true, false}) {
    const Connection c;
    stats::EngineCounters counters;
    auto o = offer(c.passive, counters);
    ASSERT_TRUE(o);
    if (!takes) o->offer.network_namespace ^= 1;
    EXPECT_EQ(take(o->offer, c.active, counters).has_value(), takes);
    pollfd p{.fd = c.passive.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 20'000), 1);
    std::array<std::byte, 16> got{};
    const IoVec one{got.data(), got.size()};
    EXPECT_EQ(c.passive.receive({&one, 1}).bytes, 1U);
    EXPECT_EQ(got[0], takes ? std::byte{1} : std::byte{0});
  }
}

}  // namespace
}  // namespace weft::shared
