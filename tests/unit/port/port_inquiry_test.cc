#include "port/port_inquiry.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>

namespace weft::port {
namespace {

Address loopback(int family, uint16_t port = 0) {
  return family == AF_INET
             ? Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), port)
             : Address::from_gid(Gid{.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
                                 port);
}

// A socket of some port.
Fd open_port(const Address& at, int type = SOCK_DGRAM) {
  Fd fd{::socket(at.family(), type | SOCK_CLOEXEC, 0)};
  EXPECT_TRUE(fd.valid());
  EXPECT_EQ(::bind(fd.get(), at.get(), at.length), 0);
  return fd;
}

bool answered(const PortInquiry& inquiry) {
  pollfd p{.fd = inquiry.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 0) == 1;
}

class OfEachFamily : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(PortInquiry, OfEachFamily, testing::Values(AF_INET, AF_INET6),
                         [](const auto& p) { return p.param == AF_INET ? "IPv4" : "IPv6"; });

constexpr std::array<std::byte, 3> kQuestion{std::byte{1}, std::byte{2}, std::byte{3}};

TEST_P(OfEachFamily, AnOpenPortHearsTheQuestionAndNothingIsSaid) {
  const Fd peer = open_port(loopback(GetParam()));
  auto inquiry = PortInquiry::ask(Address::of_socket(peer.get()), loopback(GetParam()), kQuestion);
  ASSERT_TRUE(inquiry.ok()) << inquiry.error().to_string();
  std::array<std::byte, 10> heard;
  EXPECT_EQ(::recv(peer.get(), heard.data(), heard.size(), MSG_DONTWAIT), 3);
  EXPECT_FALSE(answered(*inquiry));
  EXPECT_FALSE(inquiry->closed());
}

TEST_P(OfEachFamily, AClosedPortIsToldOnce) {
  Fd peer = open_port(loopback(GetParam()));
  const Address there = Address::of_socket(peer.get());
  peer.reset();
  auto inquiry = PortInquiry::ask(there, loopback(GetParam()), kQuestion);
  ASSERT_TRUE(inquiry.ok()) << inquiry.error().to_string();
  EXPECT_TRUE(answered(*inquiry));
  EXPECT_TRUE(inquiry->closed());
  EXPECT_FALSE(inquiry->closed());
}

TEST_P(OfEachFamily, AnOpenPortOfTcpSaysNothing) {
  const Fd peer = open_port(loopback(GetParam()), SOCK_STREAM);
  ASSERT_EQ(::listen(peer.get(), 1), 0);
  auto inquiry = PortInquiry::ask_by_tcp(Address::of_socket(peer.get()), loopback(GetParam()));
  ASSERT_TRUE(inquiry.ok()) << inquiry.error().to_string();
  EXPECT_FALSE(answered(*inquiry));
  EXPECT_FALSE(inquiry->closed());
}

TEST_P(OfEachFamily, AClosedPortOfTcpIsToldOnce) {
  // Nobody else has it meanwhile, and nobody listens.
  const Fd peer = open_port(loopback(GetParam()), SOCK_STREAM);
  auto inquiry = PortInquiry::ask_by_tcp(Address::of_socket(peer.get()), loopback(GetParam()));
  ASSERT_TRUE(inquiry.ok()) << inquiry.error().to_string();
  EXPECT_TRUE(answered(*inquiry));
  EXPECT_TRUE(inquiry->closed());
  EXPECT_FALSE(inquiry->closed());
}

TEST(PortInquiry, AForeignSourceIsRefused) {
  const auto inquiry =
      PortInquiry::ask(loopback(AF_INET, 9), Address::from_gid(Gid::from_ipv4(0xc0000201), 0), {});
  ASSERT_FALSE(inquiry.ok());
  EXPECT_EQ(inquiry.error().code, EADDRNOTAVAIL);
}

}  // namespace
}  // namespace weft::port
