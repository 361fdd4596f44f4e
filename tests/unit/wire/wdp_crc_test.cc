#include "wire/wdp_crc.h"

#include <gtest/gtest.h>

#include "tests/support/spec_example.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::to_hex;

TEST(WdpCrc, FieldIsAtOffset12LeastSignificantByteFirst) {
  // spec/wdp 2.3
  Buffer b = test::pattern(20, 1);
  store_wdp_crc(b.data(), 0x11223344);
  EXPECT_EQ(to_hex(Bytes{b}.subspan(12, 4)), "44 33 22 11");
  EXPECT_EQ(load_wdp_crc(b.data()), 0x11223344U);
  const Buffer untouched = test::pattern(20, 1);
  EXPECT_EQ(to_hex(Bytes{b}.first(12)), to_hex(Bytes{untouched}.first(12)));
  EXPECT_EQ(to_hex(Bytes{b}.subspan(16)), to_hex(Bytes{untouched}.subspan(16)));
}

TEST(WdpCrc, CoversTheWholeDatagramWithTheFieldAsZero) {
  for (const size_t n : {16, 17, 32, 48, 49, 64, 255, 1472, 65507}) {
    Buffer b = test::pattern(n, n);
    Buffer zeroed = b;
    store_wdp_crc(zeroed.data(), 0);
    EXPECT_EQ(wdp_crc_of_header(b).value(), crc32c(zeroed)) << n;
    EXPECT_FALSE(wdp_crc_matches(b)) << n;
    seal_wdp(b);
    EXPECT_TRUE(wdp_crc_matches(b)) << n;
    EXPECT_EQ(load_wdp_crc(b.data()), crc32c(zeroed)) << n;
  }
}

TEST(WdpCrc, HeaderAndPayloadMayComeInPieces) {
  const Buffer whole = test::pattern(48 + 1424, 3);
  for (const size_t header : {16, 32, 48, 64}) {
    Crc32c crc = wdp_crc_of_header(Bytes{whole}.first(header));
    crc.update(Bytes{whole}.subspan(header, 700));
    Buffer copy(whole.size() - header - 700);
    EXPECT_TRUE(copy_with_crc(copy.data(), Bytes{whole}.subspan(header + 700), crc));
    EXPECT_EQ(crc.value(), wdp_crc_of_header(whole).value()) << header;
  }
}

TEST(WdpCrc, EveryFlippedBitIsSeen) {
  Buffer b = test::example("E12");
  ASSERT_TRUE(wdp_crc_matches(b));
  for (size_t bit = 0; bit < b.size() * 8; ++bit) {
    b[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(wdp_crc_matches(b)) << bit;
    b[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
}

}  // namespace
}  // namespace weft::wire
