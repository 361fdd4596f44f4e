#include "wdp/multicast.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/support/spec_example.h"

namespace weft::wdp {
namespace {

Gid gid(std::initializer_list<uint8_t> head, std::initializer_list<uint8_t> tail) {
  Gid g;
  std::copy(head.begin(), head.end(), g.raw.begin());
  std::copy(tail.begin(), tail.end(), g.raw.end() - static_cast<ptrdiff_t>(tail.size()));
  return g;
}

// spec/wdp-ud 5.1.
TEST(Multicast, AnIpv4GroupIsReadFromEitherForm) {
  const Gid group = Gid::from_ipv4(0xe0010203);
  const Gid roce = gid({0xff, 0x0e}, {0xff, 0xff, 0xe0, 1, 2, 3});
  for (const bool ipv4 : {true, false}) {
    EXPECT_EQ(multicast_endpoint(group, ipv4).address, group);
    EXPECT_EQ(multicast_endpoint(roce, ipv4).address, group);
  }
  EXPECT_EQ(multicast_endpoint(group, true).port, multicast_endpoint(roce, false).port);
}

TEST(Multicast, OtherMgidsAreIpv6GroupsOrHashed) {
  const Gid mgid = gid({0xff, 0x0e}, {7});
  EXPECT_EQ(multicast_endpoint(mgid, false).address, mgid);
  const Gid hashed = multicast_endpoint(mgid, true).address;
  ASSERT_TRUE(hashed.is_ipv4());
  EXPECT_EQ(hashed.ipv4() & 0xfffc0000U, 0xefc00000U);
  // Not a group: the low bits are a host's address.
  const Gid host = gid({0xff, 0x0e}, {0xff, 0xff, 10, 0, 0, 1});
  EXPECT_EQ(multicast_endpoint(host, false).address, host);
}

TEST(Multicast, TheInterfacesScopeIsRaisedToTheLinks) {
  const Gid perftest = gid({0xff, 0x01}, {1});
  EXPECT_EQ(multicast_endpoint(perftest, false).address, gid({0xff, 0x02}, {1}));
  const Gid flags = gid({0xff, 0x11}, {1});
  EXPECT_EQ(multicast_endpoint(flags, false).address, gid({0xff, 0x12}, {1}));
}

TEST(Multicast, PortsLieBelowTheEphemeralOnesAndSpread) {
  std::set<uint16_t> ports;
  for (uint8_t i = 0; i < 200; ++i) {
    const auto e = multicast_endpoint(gid({0xff, 0x0e}, {i}), true);
    EXPECT_GE(e.port, 24576);
    EXPECT_LT(e.port, 32768);
    ports.insert(e.port);
  }
  EXPECT_GT(ports.size(), 180U);
}

// CRC32C of 00 x 10, ff ff e0 01 02 03, computed apart from this code.
TEST(Multicast, ThePortIsTheOneThatEveryMemberComputes) {
  EXPECT_EQ(multicast_endpoint(Gid::from_ipv4(0xe0010203), true).port, 24576 + 0xecd40942 % 8192);
}

// MGID, family of the member, IP group, UDP port: docs/spec/examples-wdp.md, computed apart from
// this code.
TEST(Multicast, TheGroupsOfTheSpecification) {
  std::istringstream rows(test::example_text("multicast groups"));
  std::string mgid;
  std::string family;
  std::string group;
  uint16_t port = 0;
  int n = 0;
  for (; rows >> mgid >> family >> group >> port; ++n) {
    Gid gid;
    ASSERT_EQ(inet_pton(AF_INET6, mgid.c_str(), gid.raw.data()), 1) << mgid;
    const Endpoint e = multicast_endpoint(gid, family == "IPv4");
    EXPECT_EQ(e.address.to_string(), group) << mgid << " " << family;
    EXPECT_EQ(e.port, port) << mgid << " " << family;
  }
  EXPECT_EQ(n, 7);
}

TEST(Multicast, KnowsMulticastFromHosts) {
  EXPECT_TRUE(is_multicast(Gid::from_ipv4(0xe0000001)));
  EXPECT_TRUE(is_multicast(Gid::from_ipv4(0xefffffff)));
  EXPECT_FALSE(is_multicast(Gid::from_ipv4(0xf0000000)));
  EXPECT_FALSE(is_multicast(Gid::from_ipv4(0x0a000001)));
  EXPECT_TRUE(is_multicast(gid({0xff, 0x02}, {1})));
  EXPECT_FALSE(is_multicast(gid({0xfe, 0x80}, {1})));
}

}  // namespace
}  // namespace weft::wdp
