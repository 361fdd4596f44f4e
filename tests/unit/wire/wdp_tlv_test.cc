#include "wire/wdp_tlv.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;

TEST(WdpTlv, LayoutOfTheSpecification) {
  // "u16 type(b15 = critical) u16 len, value, pad4"
  const Buffer b = from_hex(
      "92 34 00 05 | 01 02 03 04 05 00 00 00 | 12 35 00 00 | 00 07 00 04 "
      "| 0a 0b 0c 0d");
  Bytes rest = b;
  const auto first = WdpTlv::take(rest);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->type, 0x1234);
  EXPECT_TRUE(first->critical);
  EXPECT_EQ(to_hex(first->value), "01 02 03 04 05");
  EXPECT_EQ(first->to_string(), "TLV 4660 critical, 5 bytes");
  const auto second = WdpTlv::take(rest);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->type, 0x1235);
  EXPECT_FALSE(second->critical);
  EXPECT_TRUE(second->value.empty());
  EXPECT_EQ(second->to_string(), "TLV 4661, 0 bytes");
  const auto third = WdpTlv::take(rest);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(to_hex(third->value), "0a 0b 0c 0d");
  EXPECT_TRUE(rest.empty());

  Buffer again(first->size() + second->size() + third->size(), std::byte{0xee});
  size_t n = first->encode(again.data());
  n += second->encode(again.data() + n);
  n += third->encode(again.data() + n);
  EXPECT_EQ(n, again.size());
  EXPECT_EQ(to_hex(again), to_hex(b));
}

TEST(WdpTlv, EveryLengthIsPaddedToFour) {
  for (size_t n = 0; n < 20; ++n) {
    const Buffer value = test::pattern(n, 1);
    const WdpTlv t{.type = 3, .value = value};
    EXPECT_EQ(t.size(), 4 + (n + 3) / 4 * 4) << n;
    Buffer b(t.size() + 1, std::byte{0xee});
    EXPECT_EQ(t.encode(b.data()), t.size());
    EXPECT_EQ(b.back(), std::byte{0xee});
    b.pop_back();
    for (size_t i = 4 + n; i < b.size(); ++i) EXPECT_EQ(b[i], std::byte{0}) << n;
    Bytes rest = b;
    const auto again = WdpTlv::take(rest);
    ASSERT_TRUE(again.ok()) << n;
    EXPECT_EQ(to_hex(again->value), to_hex(value));
    EXPECT_TRUE(rest.empty()) << n;
  }
}

TEST(WdpTlv, EveryCutIsBadAndTakesNothing) {
  const Buffer value = test::pattern(9, 2);
  const WdpTlv t{.type = 3, .critical = true, .value = value};
  Buffer b(t.size());
  t.encode(b.data());
  for (size_t n = 0; n < b.size(); ++n) {
    const Buffer cut(b.begin(), b.begin() + static_cast<ptrdiff_t>(n));
    Bytes rest = cut;
    const auto taken = WdpTlv::take(rest);
    ASSERT_FALSE(taken.ok()) << n;
    EXPECT_EQ(taken.error(), WdpDrop::bad_tlv);
    EXPECT_EQ(rest.size(), n);
  }
}

TEST(WdpTlv, TypeIs15Bits) {
  Buffer b(4);
  WdpTlv{.type = 0xffff}.encode(b.data());
  EXPECT_EQ(to_hex(b), "7f ff 00 00");
  WdpTlv{.type = 0x7fff, .critical = true}.encode(b.data());
  EXPECT_EQ(to_hex(b), "ff ff 00 00");
}

TEST(WdpTlv, Padding) {
  static_assert(wdp_padded(0) == 0 && wdp_padded(1) == 4 && wdp_padded(4) == 4 &&
                wdp_padded(512) == 512 && wdp_padded(65535) == 65536);
}

}  // namespace
}  // namespace weft::wire
