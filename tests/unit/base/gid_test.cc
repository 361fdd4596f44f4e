#include "base/gid.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

Gid ipv6(std::initializer_list<uint8_t> head, uint8_t last) {
  Gid g;
  std::copy(head.begin(), head.end(), g.raw.begin());
  g.raw[15] = last;
  return g;
}

static_assert(Gid::from_ipv4(0x7f000001).is_ipv4());
static_assert(Gid::from_ipv4(0xc0000201).ipv4() == 0xc0000201);
static_assert(Gid{}.is_zero());

TEST(Gid, Ipv4IsMapped) {
  const Gid g = Gid::from_ipv4(0xc0000201);
  const std::array<uint8_t, 16> expected{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
  EXPECT_EQ(g.raw, expected);
  EXPECT_FALSE(g.is_zero());
  EXPECT_FALSE(g.is_link_local());
}

TEST(Gid, OnlyTheMappedPrefixIsIpv4) {
  for (size_t i = 0; i < 12; ++i) {
    Gid g = Gid::from_ipv4(0xc0000201);
    g.raw[i] ^= 0x01;
    EXPECT_FALSE(g.is_ipv4()) << "byte " << i;
  }
  EXPECT_FALSE(Gid{}.is_ipv4());
}

TEST(Gid, LinkLocalIsFe80Slash10) {
  EXPECT_TRUE(ipv6({0xfe, 0x80}, 1).is_link_local());
  EXPECT_TRUE(ipv6({0xfe, 0xbf}, 1).is_link_local());
  EXPECT_FALSE(ipv6({0xfe, 0xc0}, 1).is_link_local());
  EXPECT_FALSE(ipv6({0xfd, 0x80}, 1).is_link_local());
}

TEST(Gid, OrdersByBytesFromTheFirst) {
  // spec/addressing 1 compares GIDs so: the first byte that differs decides.
  EXPECT_LT(Gid::from_ipv4(0x7f000001), Gid::from_ipv4(0x7f000002));
  EXPECT_LT(Gid::from_ipv4(0x0a0000ff), Gid::from_ipv4(0x0a000100));
  EXPECT_LT(Gid::from_ipv4(0xffffffff), ipv6({0x20, 0x01}, 0));
  EXPECT_EQ(ipv6({0x20}, 9), ipv6({0x20}, 9));
}

TEST(Gid, ToStringIsTheAddress) {
  EXPECT_EQ(Gid::from_ipv4(0x7f000001).to_string(), "127.0.0.1");
  EXPECT_EQ(ipv6({0x20, 0x01, 0x0d, 0xb8}, 1).to_string(), "2001:db8::1");
  EXPECT_EQ(Gid{}.to_string(), "::");
}

}  // namespace
}  // namespace weft
