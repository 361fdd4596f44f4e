#include "port/tcp_listener.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <cerrno>

namespace weft::port {
namespace {

constexpr Gid kLoopback = Gid::from_ipv4(INADDR_LOOPBACK);

TEST(TcpListener, TheKernelChoosesThePort) {
  const auto l = TcpListener::listen(Address::from_gid(kLoopback, 0), 4);
  ASSERT_TRUE(l.ok());
  EXPECT_NE(l->local().port(), 0);
  EXPECT_TRUE(l->valid());
}

TEST(TcpListener, NobodyWaits) {
  const auto l = TcpListener::listen(Address::from_gid(kLoopback, 0), 4);
  ASSERT_TRUE(l.ok());
  EXPECT_FALSE(l->accept()) << "without waiting";
}

TEST(TcpListener, APortThatIsTakenIsRefused) {
  const auto first = TcpListener::listen(Address::from_gid(kLoopback, 0), 4);
  ASSERT_TRUE(first.ok());
  const auto second = TcpListener::listen(first->local(), 4);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, EADDRINUSE);
}

TEST(TcpListener, BoundFirstListeningLater) {
  auto l = TcpListener::bind(Address::from_gid(kLoopback, 0));
  ASSERT_TRUE(l.ok());
  const Address at = l->local();
  EXPECT_NE(at.port(), 0);
  ASSERT_TRUE(l->start(4).ok());
  auto c = TcpStream::connect({}, at);
  ASSERT_TRUE(c.ok());
  pollfd p{.fd = l->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 10'000), 1);
  const auto accepted = l->accept();
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->local().port(), at.port());
}

// spec/addressing 2.2: wildcard, dual-stack where IPv6 exists.
TEST(TcpListener, TheIpv6WildcardHearsIpv4) {
  const auto l = TcpListener::listen(Address::any(AF_INET6, 0), 4);
  if (!l.ok()) GTEST_SKIP() << "no IPv6 on this host: " << l.error().to_string();
  auto c = TcpStream::connect({}, Address::from_gid(kLoopback, l->local().port()));
  ASSERT_TRUE(c.ok());
  pollfd p{.fd = l->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 10'000), 1);
  const auto accepted = l->accept();
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->peer().gid(), kLoopback);
}

TEST(TcpListener, OnlyIpv6WhereAsked) {
  // The number is free on IPv4, unless somebody else on this machine has it there.
  bool found = false;
  for (int i = 0; i < 20 && !found; ++i) {
    const auto l = TcpListener::bind(Address::any(AF_INET6, 0), true);
    if (!l.ok()) GTEST_SKIP() << "no IPv6 on this host: " << l.error().to_string();
    found = TcpListener::bind(Address::any(AF_INET, l->local().port())).ok();
  }
  EXPECT_TRUE(found);
}

TEST(TcpListener, AnAddressOfAnotherHost) {
  const auto l = TcpListener::bind(Address::from_gid(Gid::from_ipv4(0xc0000201), 0));
  ASSERT_FALSE(l.ok());
  EXPECT_EQ(l.error().code, EADDRNOTAVAIL);
}

// The process has no descriptor left for a peer, who is asked in again ten times a second.
TEST(TcpListener, RunningOutOfDescriptorsIsSaidOnceEachTime) {
  const auto l = TcpListener::listen(Address::from_gid(kLoopback, 0), 4);
  ASSERT_TRUE(l.ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  for (int round = 0; round < 2; ++round) {
    auto c = TcpStream::connect({}, l->local());
    ASSERT_TRUE(c.ok());
    pollfd p{.fd = l->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 10'000), 1);
    testing::internal::CaptureStderr();
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(l->accept());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("no file descriptor"), std::string::npos);
    EXPECT_EQ(said.find("no file descriptor"), said.rfind("no file descriptor")) << said;
    EXPECT_TRUE(l->accept());
  }
}

}  // namespace
}  // namespace weft::port
