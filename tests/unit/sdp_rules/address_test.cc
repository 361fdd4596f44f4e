#include "sdp/rules/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "tests/unit/sdp_rules/endpoints.h"

namespace weft::sdp {
namespace {

bool contains(const char* range, const char* address) {
  const auto parsed = AddressRange::parse(range);
  EXPECT_TRUE(parsed) << range;
  return parsed && parsed->contains(at(address).address);
}

TEST(Endpoint, AsText) {
  EXPECT_EQ(at("192.0.2.1", 80).to_string(), "192.0.2.1:80");
  EXPECT_EQ(at("2001:db8::1", 80).to_string(), "[2001:db8::1]:80");
}

TEST(AddressRange, OneAddress) {
  EXPECT_TRUE(contains("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(contains("192.0.2.1", "192.0.2.0"));
  EXPECT_TRUE(contains("2001:db8::1", "2001:db8::1"));
  EXPECT_FALSE(contains("2001:db8::1", "2001:db8::2"));
}

TEST(AddressRange, APrefixThatEndsWithinAByte) {
  EXPECT_TRUE(contains("10.20.32.0/19", "10.20.63.255"));
  EXPECT_FALSE(contains("10.20.32.0/19", "10.20.64.0"));
  EXPECT_TRUE(contains("2001:db8:8000::/33", "2001:db8:ffff::1"));
  EXPECT_FALSE(contains("2001:db8:8000::/33", "2001:db8:7fff::1"));
}

// libsdp compared the rule's address with all its bits, so that such a rule never fitted.
TEST(AddressRange, BitsBehindThePrefixMeanNothing) {
  EXPECT_TRUE(contains("192.0.2.77/24", "192.0.2.1"));
  EXPECT_TRUE(contains("2001:db8::77/64", "2001:db8::1"));
}

TEST(AddressRange, AnIpv6SocketThatSpeaksIpv4MeetsRulesOfIpv4) {
  EXPECT_TRUE(contains("192.0.2.0/24", "::ffff:192.0.2.9"));
  EXPECT_TRUE(contains("::ffff:192.0.2.0/120", "192.0.2.9"));
}

TEST(AddressRange, AnyOfOneKindIsNotAnyOfTheOther) {
  EXPECT_TRUE(contains("0.0.0.0/0", "203.0.113.5"));
  EXPECT_FALSE(contains("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(contains("*", "203.0.113.5"));
  EXPECT_TRUE(contains("*", "2001:db8::1"));
}

TEST(AddressRange, WhatIsNoneIsRefused) {
  using namespace std::string_view_literals;
  for (const auto text : {""sv, "**"sv, "192.0.2"sv, "192.0.2.1/33"sv, "192.0.2.1/"sv,
                          "192.0.2.1/-1"sv, "192.0.2.1/8x"sv, "2001:db8::/129"sv, "/8"sv, "host"sv,
                          "192.0.2.256"sv, "192.0.2.1\0x"sv, "fe80::1%eth0"sv}) {
    EXPECT_FALSE(AddressRange::parse(text)) << text;
  }
}

TEST(AddressRange, ItsTextIsReadBackAsTheSame) {
  for (const char* const text : {"192.0.2.77/24", "192.0.2.1", "0.0.0.0/0", "::/0",
                                 "2001:db8::1/48", "::ffff:192.0.2.1", "::ffff:0:0/80", "*"}) {
    const auto range = AddressRange::parse(text);
    ASSERT_TRUE(range) << text;
    EXPECT_EQ(AddressRange::parse(range->to_string()), range) << range->to_string();
  }
}

TEST(EndpointFrom, EitherFamily) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(5001);
  inet_pton(AF_INET, "192.0.2.1", &in.sin_addr);
  const auto ipv4 = Endpoint::from(reinterpret_cast<const sockaddr*>(&in), sizeof in);
  ASSERT_TRUE(ipv4);
  EXPECT_EQ(ipv4->address.to_string(), "192.0.2.1");
  EXPECT_EQ(ipv4->port, 5001);

  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(80);
  inet_pton(AF_INET6, "2001:db8::1", &in6.sin6_addr);
  const auto ipv6 = Endpoint::from(reinterpret_cast<const sockaddr*>(&in6), sizeof in6);
  ASSERT_TRUE(ipv6);
  EXPECT_EQ(ipv6->address.to_string(), "2001:db8::1");
  EXPECT_EQ(ipv6->port, 80);
}

TEST(EndpointFrom, OthersAndCutOnesAreNone) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  const auto* const address = reinterpret_cast<const sockaddr*>(&in);
  EXPECT_FALSE(Endpoint::from(nullptr, sizeof in));
  EXPECT_FALSE(Endpoint::from(address, 0));
  EXPECT_FALSE(Endpoint::from(address, sizeof in - 1));
  in.sin_family = AF_UNIX;
  EXPECT_FALSE(Endpoint::from(address, sizeof in));
}

}  // namespace
}  // namespace weft::sdp
