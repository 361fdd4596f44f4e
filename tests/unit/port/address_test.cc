#include "port/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "port/fd.h"

namespace weft::port {
namespace {

constexpr Gid kV4 = Gid::from_ipv4(0xc0000201);  // 192.0.2.1

Gid v6(const char* text) {
  Gid g;
  EXPECT_EQ(::inet_pton(AF_INET6, text, g.raw.data()), 1);
  return g;
}

TEST(Address, OfAnIpv4Gid) {
  const Address a = Address::from_gid(kV4, 7471);
  EXPECT_EQ(a.family(), AF_INET);
  EXPECT_EQ(a.port(), 7471);
  EXPECT_EQ(a.gid(), kV4);
  EXPECT_EQ(a.length, sizeof(sockaddr_in));
  EXPECT_EQ(a.to_string(), "192.0.2.1:7471");
  EXPECT_FALSE(a.is_any());
}

TEST(Address, OfAnIpv6Gid) {
  const Address a = Address::from_gid(v6("2001:db8::1"), 7471, 5);
  EXPECT_EQ(a.family(), AF_INET6);
  EXPECT_EQ(a.gid(), v6("2001:db8::1"));
  EXPECT_EQ(a.scope(), 0U) << "link-local addresses alone have one";
  EXPECT_EQ(a.to_string(), "[2001:db8::1]:7471");
}

TEST(Address, LinkLocalKeepsItsScope) {
  EXPECT_EQ(Address::from_gid(v6("fe80::1"), 1, 5).scope(), 5U);
  EXPECT_EQ(Address::from_gid(kV4, 1, 5).scope(), 0U);
}

TEST(Address, OfASocket) {
  const Address here = Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0);
  const Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(::bind(fd.get(), here.get(), here.length), 0);
  const Address a = Address::of_socket(fd.get());
  EXPECT_TRUE(a.valid());
  EXPECT_EQ(a.gid(), here.gid());
  EXPECT_NE(a.port(), 0);
  errno = 0;
  EXPECT_FALSE(Address::of_socket(-1).valid());
  EXPECT_EQ(errno, EBADF);
}

TEST(Address, Any) {
  EXPECT_TRUE(Address::any(AF_INET, 1).is_any());
  EXPECT_TRUE(Address::any(AF_INET6, 1).is_any());
  EXPECT_EQ(Address::any(AF_INET6, 99).port(), 99);
}

TEST(Address, IsAValue) {
  const Address a = Address::from_gid(kV4, 80);
  EXPECT_EQ(a.to_string(), "192.0.2.1:80");
  Address b = a;
  b.set_port(81);
  EXPECT_EQ(a.port(), 80);
  EXPECT_EQ(b.port(), 81);
}

TEST(Address, MappedIpv4HasTheGidOfIpv4) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  ASSERT_EQ(::inet_pton(AF_INET6, "::ffff:192.0.2.1", &in.sin6_addr), 1);
  Address a;
  std::memcpy(&a.storage, &in, sizeof in);
  a.length = sizeof in;
  EXPECT_EQ(a.gid(), kV4);
}

TEST(Address, NoAddress) {
  EXPECT_FALSE(Address{}.valid());
  EXPECT_EQ(Address{}.to_string(), "no address");
}

}  // namespace
}  // namespace weft::port
