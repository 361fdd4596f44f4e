#include "wire/wfrc.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;

// spec/addressing 5.1, every field with bytes of its own.
constexpr char kBlock[] =
    "57 46 52 43 | 01 | 01 | 00 04 | 00 9c 40 02 | 00 c3 50 07 | 01 02 03 04 | 11 12 13 14"
    "21 22 23 24 25 26 27 28"
    "00 00 00 00 00 00 00 00 00 00 ff ff c0 00 02 01"
    "20 01 0d b8 00 01 00 02 00 03 00 04 00 05 00 06";

std::string encoded(const Wfrc& w) {
  Buffer b(Wfrc::kSize + 1, std::byte{0xee});
  w.encode(b.data());
  EXPECT_EQ(b.back(), std::byte{0xee});
  b.pop_back();
  return to_hex(b);
}

TEST(Wfrc, LayoutOfTheSpecification) {
  const Buffer b = from_hex(kBlock);
  ASSERT_EQ(b.size(), Wfrc::kSize);
  const auto w = Wfrc::parse(b);
  ASSERT_TRUE(w.has_value());
  EXPECT_EQ(w->version, 1);
  EXPECT_TRUE(w->fallback);
  EXPECT_EQ(w->code, Wfrc::Code::role_conflict);
  EXPECT_EQ(w->source_qpn, make_qpn(40000, 2));
  EXPECT_EQ(w->destination_qpn, make_qpn(50000, 7));
  EXPECT_EQ(w->sq_psn, 0x01020304U);
  EXPECT_EQ(w->rq_psn, 0x11121314U);
  EXPECT_EQ(w->nonce, 0x2122232425262728U);
  EXPECT_EQ(w->source_gid, Gid::from_ipv4(0xc0000201));
  EXPECT_EQ(w->destination_gid.to_string(), "2001:db8:1:2:3:4:5:6");
  EXPECT_EQ(encoded(*w), to_hex(b));
}

TEST(Wfrc, BytesBehindTheBlockAreNotLookedAt) {
  Buffer b = from_hex(kBlock);
  b.push_back(std::byte{0x77});
  ASSERT_TRUE(Wfrc::parse(b).has_value());
  EXPECT_EQ(encoded(*Wfrc::parse(b)), to_hex(Bytes{b}.first(Wfrc::kSize)));
}

TEST(Wfrc, TooShortOrWithoutTheNameIsNone) {
  const Buffer b = from_hex(kBlock);
  for (size_t n = 0; n < Wfrc::kSize; ++n) EXPECT_FALSE(Wfrc::parse(Bytes{b}.first(n))) << n;
  for (size_t i = 0; i < 4; ++i) {
    Buffer other = b;
    other[i] ^= std::byte{0x01};
    EXPECT_FALSE(Wfrc::parse(other)) << i;
  }
}

TEST(Wfrc, AnotherVersionIsTheCallersToRefuse) {
  Buffer b = from_hex(kBlock);
  b[4] = std::byte{2};
  ASSERT_TRUE(Wfrc::parse(b).has_value());
  EXPECT_NE(Wfrc::parse(b)->version, Wfrc::kVersion);
}

TEST(Wfrc, ReservedBitsAreIgnored) {
  Buffer b = from_hex(kBlock);
  b[5] = std::byte{0xfe};
  b[8] = std::byte{0xa5};
  b[12] = std::byte{0x5a};
  const auto w = Wfrc::parse(b);
  ASSERT_TRUE(w.has_value());
  EXPECT_FALSE(w->fallback);
  EXPECT_EQ(w->source_qpn, make_qpn(40000, 2));
  EXPECT_EQ(w->destination_qpn, make_qpn(50000, 7));
}

TEST(Wfrc, CodesHaveNames) {
  std::set<std::string> names;
  for (uint16_t code = 0; code <= 7; ++code) {
    names.insert(to_string(static_cast<Wfrc::Code>(code)));
  }
  EXPECT_EQ(names.size(), 8U);
  EXPECT_STREQ(to_string(Wfrc::Code::ok), "ok");
  EXPECT_STREQ(to_string(Wfrc::Code{0xffff}), "unknown code");
}

TEST(Wfrc, ToString) {
  EXPECT_EQ(Wfrc::parse(from_hex(kBlock))->to_string(),
            "WFRC another connection won: QPN 0x9c4002 at 192.0.2.1 to QPN 0xc35007 at "
            "2001:db8:1:2:3:4:5:6, fallback");
}

}  // namespace
}  // namespace weft::wire
