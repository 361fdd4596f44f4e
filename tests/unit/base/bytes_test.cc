#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/hex.h"

namespace weft {
namespace {

using test::from_hex;
using test::to_hex;

static_assert(byte_swap<uint8_t>(0x12) == 0x12);
static_assert(byte_swap<uint16_t>(0x1234) == 0x3412);
static_assert(byte_swap<uint32_t>(0x12345678) == 0x78563412);
static_assert(byte_swap<uint64_t>(0x0123456789abcdef) == 0xefcdab8967452301);

TEST(Bytes, LoadReadsTheMostSignificantByteFirst) {
  const auto b = from_hex("01 23 45 67 89 ab cd ef");
  EXPECT_EQ(load_be<uint8_t>(b.data()), 0x01U);
  EXPECT_EQ(load_be<uint16_t>(b.data()), 0x0123U);
  EXPECT_EQ(load_be<uint32_t>(b.data()), 0x01234567U);
  EXPECT_EQ(load_be<uint64_t>(b.data()), 0x0123456789abcdefU);
}

TEST(Bytes, StoreWritesTheMostSignificantByteFirst) {
  std::array<std::byte, 8> b{};
  store_be<uint64_t>(b.data(), 0x0123456789abcdef);
  EXPECT_EQ(to_hex(b), "01 23 45 67 89 ab cd ef");
  store_be<uint32_t>(b.data(), 0xcafef00d);
  store_be<uint16_t>(b.data() + 4, 0x0022);
  store_be<uint8_t>(b.data() + 6, 0x7f);
  EXPECT_EQ(to_hex(b), "ca fe f0 0d 00 22 7f ef");
}

TEST(Bytes, AnyAlignmentWillDo) {
  const auto b = test::pattern(32, 1);
  std::array<std::byte, 32> copy{};
  for (size_t at = 0; at + 8 <= b.size(); ++at) {
    store_be(copy.data() + at, load_be<uint64_t>(b.data() + at));
    EXPECT_EQ(std::memcmp(copy.data() + at, b.data() + at, 8), 0) << "at " << at;
  }
}

TEST(Bytes, LittleEndianIsForTheCrcField) {
  // spec/mpa 3.2: value 0x8A9136AA stands on the wire as aa 36 91 8a.
  std::array<std::byte, 4> b{};
  store_le32(b.data(), 0x8a9136aa);
  EXPECT_EQ(to_hex(b), "aa 36 91 8a");
  EXPECT_EQ(load_le32(b.data()), 0x8a9136aaU);
}

}  // namespace
}  // namespace weft
