#include "port/both_ports.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "port/udp_bind.h"

namespace weft::port {
namespace {

TEST(BothPorts, OneNumberOnTcpAndUdp) {
  for (const int family : {AF_INET, AF_INET6}) {
    const auto both = bind_both(Address::any(family, 0));
    if (family == AF_INET6 && !both.ok() && both.error().code == EAFNOSUPPORT) {
      GTEST_SKIP() << "no IPv6 on this host: " << both.error().to_string();
    }
    ASSERT_TRUE(both.ok()) << both.error().to_string();
    const uint16_t number = both->tcp.local().port();
    EXPECT_NE(number, 0);
    EXPECT_EQ(Address::of_socket(both->udp.get()).port(), number);
    EXPECT_EQ(bind_udp(Address::any(family, number)).error().code, EADDRINUSE);
    EXPECT_TRUE(both->tcp.start(1).ok());
  }
}

TEST(BothPorts, EachHasANumberOfItsOwn) {
  const Address at = Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0);
  std::vector<BothPorts> all;
  for (int i = 0; i < 40; ++i) {
    auto both = bind_both(at);
    ASSERT_TRUE(both.ok()) << both.error().to_string();
    EXPECT_TRUE(both->tcp.start(1).ok());
    all.push_back(std::move(*both));
  }
}

TEST(BothPorts, AnAddressThatIsNotThisHosts) {
  const auto both = bind_both(Address::from_gid(Gid::from_ipv4(0xcb007101), 0));
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().code, EADDRNOTAVAIL);
}

}  // namespace
}  // namespace weft::port
