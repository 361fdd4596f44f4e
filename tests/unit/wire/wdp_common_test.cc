#include "wire/wdp_common.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;

constexpr char kCommon[] = "d1 3b 07 09 | 01 02 03 04 | 11 12 13 14 | 21 22 23 24";

std::string encoded(const WdpCommon& c) {
  Buffer b(WdpCommon::kSize + 1, std::byte{0xee});
  c.encode(b.data());
  EXPECT_EQ(b.back(), std::byte{0xee}) << "wrote beyond kSize";
  b.pop_back();
  return to_hex(b);
}

TEST(WdpCommon, LayoutOfTheSpecification) {
  const auto c = WdpCommon::parse(from_hex(kCommon));
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->wdp_class, WdpClass::rd);
  EXPECT_TRUE(c->flags.crc && c->flags.ack_requested && c->flags.retransmission);
  EXPECT_FALSE(c->flags.immediate);
  EXPECT_EQ(c->didx, 7);
  EXPECT_EQ(c->sidx, 9);
  EXPECT_EQ(c->token, SessionToken{0x01020304});
  EXPECT_EQ(c->class_word, 0x11121314U);
  EXPECT_EQ(encoded(*c), "d1 3b 07 09 01 02 03 04 11 12 13 14 00 00 00 00") << "no CRC yet";
}

TEST(WdpCommon, EveryFirstByte) {
  // "Byte 0 = 0xD1: magic nibble 0xD, version nibble 1. Anything else: drop, count."
  Buffer b = from_hex(kCommon);
  for (unsigned first = 0; first < 256; ++first) {
    b[0] = static_cast<std::byte>(first);
    const auto c = WdpCommon::parse(b);
    EXPECT_EQ(c.ok(), first == 0xd1) << first;
    if (c.ok()) continue;
    EXPECT_EQ(c.error(), first >> 4 == 0xd ? WdpDrop::other_version : WdpDrop::not_wdp) << first;
  }
}

TEST(WdpCommon, EverySecondByte) {
  // Classes 6 to 15: drop. Each flag is a bit of its own.
  Buffer b = from_hex(kCommon);
  for (unsigned second = 0; second < 256; ++second) {
    b[1] = static_cast<std::byte>(second);
    const auto c = WdpCommon::parse(b);
    ASSERT_EQ(c.ok(), second >> 4 <= 5) << second;
    if (!c.ok()) {
      EXPECT_EQ(c.error(), WdpDrop::unknown_class) << second;
      continue;
    }
    EXPECT_EQ(static_cast<unsigned>(c->wdp_class), second >> 4);
    EXPECT_EQ(c->flags.crc, (second & 8) != 0);
    EXPECT_EQ(c->flags.immediate, (second & 4) != 0);
    EXPECT_EQ(c->flags.ack_requested, (second & 2) != 0);
    EXPECT_EQ(c->flags.retransmission, (second & 1) != 0);
    Buffer again(WdpCommon::kSize);
    c->encode(again.data());
    EXPECT_EQ(std::to_integer<unsigned>(again[1]), second);
  }
}

TEST(WdpCommon, EveryCutIsTooShort) {
  const Buffer b = from_hex(kCommon);
  for (size_t n = 0; n < WdpCommon::kSize; ++n) {
    const Buffer cut(b.begin(), b.begin() + static_cast<ptrdiff_t>(n));
    const auto c = WdpCommon::parse(cut);
    ASSERT_FALSE(c.ok()) << n;
    EXPECT_EQ(c.error(), WdpDrop::too_short) << n;
  }
}

TEST(WdpCommon, RoundTrips) {
  SeededRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t r = random.next();
    const WdpCommon c{.wdp_class = static_cast<WdpClass>(r % 5),
                      .flags = WdpFlags::from_bits(r >> 8 & 15),
                      .didx = static_cast<uint8_t>(r >> 16),
                      .sidx = static_cast<uint8_t>(r >> 24),
                      .token = SessionToken{static_cast<uint32_t>(r >> 32)},
                      .class_word = static_cast<uint32_t>(random.next())};
    Buffer b(WdpCommon::kSize);
    c.encode(b.data());
    const auto again = WdpCommon::parse(b);
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(*again, c) << to_hex(b);
  }
}

TEST(WdpCommon, ToString) {
  EXPECT_EQ(WdpCommon::parse(from_hex(kCommon))->to_string(),
            "RD from 9 to 7 token 0x01020304 word 0x11121314, CRC, ACKREQ, RETX");
  EXPECT_EQ(WdpCommon{.flags = {.immediate = true}}.to_string(),
            "CTL from 0 to 0 token 0x00000000 word 0x00000000, IMM");
}

TEST(WdpClass, Names) {
  std::set<std::string> names;
  for (uint8_t c = 0; c < 6; ++c) names.insert(to_string(static_cast<WdpClass>(c)));
  EXPECT_EQ(names.size(), 6U);
  EXPECT_STREQ(to_string(WdpClass::rd_ack), "RDACK");
  EXPECT_STREQ(to_string(WdpClass{15}), "unknown class");
}

}  // namespace
}  // namespace weft::wire
