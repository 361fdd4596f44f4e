#include "trace/packet.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace weft::trace {
namespace {

using test::from_hex;
using test::to_hex;

Gid gid(std::string_view hex) {
  const auto bytes = from_hex(hex);
  Gid g;
  std::memcpy(g.raw.data(), bytes.data(), g.raw.size());
  return g;
}

const Endpoint kA{Gid::from_ipv4(0xc0000201), 40846};  // 192.0.2.1
const Endpoint kB{Gid::from_ipv4(0xc6336407), 18515};  // 198.51.100.7
const Endpoint kA6{gid("20010db8 00000000 00000000 00000001"), 40846};
const Endpoint kB6{gid("20010db8 00000000 00000000 0000abcd"), 18515};

// The sum of RFC 1071 in another way than the one under test: byte by byte, carry by carry.
uint16_t sum(Bytes bytes, uint32_t start = 0) {
  uint32_t s = start;
  for (size_t i = 0; i < bytes.size(); ++i) {
    s += std::to_integer<uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
    if (s > 0xffff) s -= 0xffff;
  }
  return static_cast<uint16_t>(s);
}

TEST(TcpHeaders, OverIpv4) {
  const Headers h = tcp_headers(kA, kB,
                                {.sequence = 0x01020304,
                                 .acknowledgment = 0xa0b0c0d0,
                                 .flags = tcp_flag::kPsh | tcp_flag::kAck},
                                88);
  // Total length 20 + 20 + 88; checksums are looked at below.
  const auto fixed = from_hex(
      "45 00 0080 0000 4000 40 06 | 0000 | c0000201 c6336407"
      "9f8e 4853 01020304 a0b0c0d0 50 18 ffff | 0000 | 0000");
  auto got = test::join({h.bytes()});
  EXPECT_EQ(sum(Bytes{got}.first(20)), 0xffff) << "RFC 791: the sum over the header is all ones";
  got[10] = got[11] = got[36] = got[37] = std::byte{0};
  EXPECT_EQ(to_hex(got), to_hex(fixed));
}

TEST(TcpHeaders, OverIpv6) {
  const Headers h =
      tcp_headers(kA6, kB6, {.sequence = 7, .acknowledgment = 9, .flags = tcp_flag::kAck}, 1000);
  auto got = test::join({h.bytes()});
  got[56] = got[57] = std::byte{0};
  EXPECT_EQ(to_hex(got), to_hex(from_hex("60000000 03fc 06 40"
                                         "20010db8 00000000 00000000 00000001"
                                         "20010db8 00000000 00000000 0000abcd"
                                         "9f8e 4853 00000007 00000009 50 10 ffff 0000 0000")));
}

// RFC 9293 section 3.1: the pseudo-header has both addresses, the protocol and the length of what
// follows the IP header.
TEST(TcpHeaders, ChecksumFieldHasTheSumOfThePseudoHeader) {
  const Headers four = tcp_headers(kA, kB, {.flags = tcp_flag::kAck}, 60'000);
  EXPECT_EQ(load_be<uint16_t>(four.bytes().data() + 36),
            sum(from_hex("c0000201 c6336407 0006"), 60'020));
  const Headers six = tcp_headers(kA6, kB6, {.flags = tcp_flag::kAck}, 60'000);
  EXPECT_EQ(load_be<uint16_t>(six.bytes().data() + 56),
            sum(from_hex("20010db8 00000000 00000000 00000001"
                         "20010db8 00000000 00000000 0000abcd 0006"),
                60'020));
}

TEST(TcpHeaders, ASynTellsSegmentSizeAndWindowScale) {
  for (const bool six : {false, true}) {
    const Headers h = tcp_headers(six ? kA6 : kA, six ? kB6 : kB, {.flags = tcp_flag::kSyn}, 0);
    const Bytes tcp = h.bytes().subspan(six ? 40 : 20);
    ASSERT_EQ(tcp.size(), 28U);
    EXPECT_EQ(to_hex(tcp.subspan(12, 2)), "70 02") << "seven words, SYN";
    EXPECT_EQ(to_hex(tcp.subspan(20)), "02 04 ff d7 03 03 0e 00");
  }
}

TEST(TcpHeaders, TheLargestPayloadFitsInto16BitsOfLength) {
  const Headers four = tcp_headers(kA, kB, {.flags = tcp_flag::kAck}, kMostPayload);
  EXPECT_EQ(load_be<uint16_t>(four.bytes().data() + 2), 65535);
  const Headers six = tcp_headers(kA6, kB6, {.flags = tcp_flag::kAck}, kMostPayload);
  EXPECT_EQ(load_be<uint16_t>(six.bytes().data() + 4), kMostPayload + 20);
}

TEST(UdpHeaders, OverIpv4AndIpv6) {
  auto four = test::join({udp_headers(kA, kB, 33).bytes()});
  EXPECT_EQ(sum(Bytes{four}.first(20)), 0xffff);
  EXPECT_EQ(load_be<uint16_t>(four.data() + 26), sum(from_hex("c0000201 c6336407 0011"), 41));
  four[10] = four[11] = four[26] = four[27] = std::byte{0};
  EXPECT_EQ(to_hex(four), to_hex(from_hex("45 00 003d 0000 4000 40 11 0000 c0000201 c6336407"
                                          "9f8e 4853 0029 0000")));
  auto six = test::join({udp_headers(kB6, kA6, 33).bytes()});
  six[46] = six[47] = std::byte{0};
  EXPECT_EQ(to_hex(six), to_hex(from_hex("60000000 0029 11 40"
                                         "20010db8 00000000 00000000 0000abcd"
                                         "20010db8 00000000 00000000 00000001"
                                         "4853 9f8e 0029 0000")));
}

}  // namespace
}  // namespace weft::trace
