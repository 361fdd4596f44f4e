#include "port/route.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace weft::port {
namespace {

Address ipv4(uint32_t address, uint16_t port = 0) {
  return Address::from_gid(Gid::from_ipv4(address), port);
}

TEST(SourceTowards, TheLoopbackInterface) {
  const auto s = source_towards(ipv4(INADDR_LOOPBACK, 7471), {});
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(s->gid(), Gid::from_ipv4(INADDR_LOOPBACK));
  EXPECT_EQ(s->port(), 0);
}

TEST(SourceTowards, AGivenSourceIsKept) {
  const auto s = source_towards(ipv4(INADDR_LOOPBACK), ipv4(0x7f000007));
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->gid(), Gid::from_ipv4(0x7f000007));
  EXPECT_TRUE(source_towards(ipv4(INADDR_LOOPBACK), Address::any(AF_INET, 0)).ok());
}

TEST(SourceTowards, AForeignSourceIsRefused) {
  const auto s = source_towards(ipv4(INADDR_LOOPBACK), ipv4(0xc0000201));
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, EADDRNOTAVAIL);
}

TEST(SourceTowards, ABroadcastAddressIsRefused) {
  const auto s = source_towards(ipv4(0xffffffff), {});
  ASSERT_FALSE(s.ok());
  EXPECT_TRUE(s.error().code == EACCES || s.error().code == ENETUNREACH) << s.error().to_string();
}

TEST(CheckLocal, OwnAndForeignAddresses) {
  EXPECT_EQ(check_local(ipv4(INADDR_LOOPBACK, 9)), 0) << "the port is not looked at";
  EXPECT_EQ(check_local(ipv4(0xc0000201)), EADDRNOTAVAIL);
}

}  // namespace
}  // namespace weft::port
