#include "cm/bound_port.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "port/udp_bind.h"

namespace weft::cm {
namespace {

port::Address here(uint16_t number) {
  return port::Address::from_gid(Gid::from_ipv4(0x7f000001), number);
}

// A listener needs both, so nobody else gets the number on UDP meanwhile.
TEST(BoundPort, TheKernelsChoiceIsKeptOnTcpAndUdp) {
  BoundPort p;
  ASSERT_EQ(p.bind(here(0), false), 0);
  EXPECT_TRUE(p.valid());
  EXPECT_TRUE(p.any());
  ASSERT_NE(p.number(), 0);
  const auto other = port::bind_udp(here(p.number()));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, EADDRINUSE);
  EXPECT_TRUE(p.share_udp(here(p.number()), false).ok());
}

TEST(BoundPort, OneOfTheProgramsChoiceIsThatOne) {
  BoundPort first;
  ASSERT_EQ(first.bind(here(0), false), 0);
  const uint16_t number = first.number();
  first.close();
  EXPECT_FALSE(first.valid());
  BoundPort p;
  ASSERT_EQ(p.bind(here(number), false), 0);
  EXPECT_EQ(p.number(), number);
  EXPECT_FALSE(p.any());
}

TEST(BoundPort, WhereSomebodyListensNobodyElseDoes) {
  BoundPort p;
  ASSERT_EQ(p.bind(here(0), false), 0);
  ASSERT_EQ(p.listen(here(p.number()), 0, {}), 0);
  BoundPort other;
  const int bound = other.bind(here(p.number()), false);
  EXPECT_EQ(bound != 0 ? bound : other.listen(here(p.number()), 0, {}), EADDRINUSE);
}

// It serves RC alone then.
TEST(BoundPort, WithoutItsNumberOnUdp) {
  BoundPort p;
  ASSERT_EQ(p.bind_tcp(here(0), false), 0);
  const auto other = port::bind_udp(here(p.number()));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(p.share_udp(here(p.number()), false).ok());
}

TEST(BoundPort, ToConnectFromItNothingIsLeftBehind) {
  BoundPort p;
  ASSERT_EQ(p.bind(here(0), false), 0);
  const uint16_t number = p.number();
  EXPECT_TRUE(p.take_socket().valid());
  EXPECT_FALSE(p.valid());
  EXPECT_TRUE(port::bind_udp(here(number)).ok());
}

}  // namespace
}  // namespace weft::cm
