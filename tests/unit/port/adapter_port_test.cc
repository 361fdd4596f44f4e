#include "port/adapter_port.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <set>

namespace weft::port {
namespace {

int bind_udp(uint16_t port) {
  const Fd fd{::socket(AF_INET, SOCK_DGRAM, 0)};
  const Address at = Address::any(AF_INET, port);
  return ::bind(fd.get(), at.get(), at.length) == 0 ? 0 : errno;
}

// spec/addressing 2.2: ports 0..1023, 24576..32767 and 65535 are never used.
TEST(ClaimPort, NumbersFitAQueuePairNumber) {
  std::set<uint16_t> numbers;
  std::vector<PortClaim> claims;
  for (int i = 0; i < 40; ++i) {
    auto c = claim_port();
    ASSERT_TRUE(c.ok()) << c.error().to_string();
    EXPECT_GE(c->number, 1024);
    EXPECT_FALSE(c->number >= 24'576 && c->number <= 32'767) << c->number;
    EXPECT_NE(c->number, 65'535);
    numbers.insert(c->number);
    claims.push_back(std::move(*c));
  }
  EXPECT_EQ(numbers.size(), 40U);
}

TEST(ClaimPort, TheSameNumberOnUdpAndTcp) {
  const auto c = claim_port();
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->tcp.local().port(), c->number);
  EXPECT_EQ(bind_udp(c->number), EADDRINUSE) << "the UDP bind is the lock";
  auto stream =
      TcpStream::connect({}, Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), c->number));
  ASSERT_TRUE(stream.ok());
  pollfd p{.fd = c->tcp.fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 10'000), 1) << "it listens";
}

TEST(ClaimPort, GivenBackWhenItEnds) {
  uint16_t number = 0;
  {
    const auto c = claim_port();
    ASSERT_TRUE(c.ok());
    number = c->number;
  }
  EXPECT_EQ(bind_udp(number), 0);
}

TEST(ClaimPort, TheOneThatIsWishedForOrNone) {
  uint16_t number = 0;
  {
    const auto any = claim_port();
    ASSERT_TRUE(any.ok());
    number = any->number;
    const auto taken = claim_port(number);
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.error().code, EADDRINUSE);
  }
  const auto c = claim_port(number);
  ASSERT_TRUE(c.ok()) << c.error().to_string();
  EXPECT_EQ(c->number, number);
  for (const uint16_t unfit : {80, 24'576, 32'767, 65'535}) {
    const auto none = claim_port(unfit);
    ASSERT_FALSE(none.ok()) << unfit;
    EXPECT_EQ(none.error().code, EINVAL);
  }
}

}  // namespace
}  // namespace weft::port
