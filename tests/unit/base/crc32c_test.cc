#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "base/crc32c_fold.h"
#include "base/random.h"
#include "tests/support/hex.h"

namespace weft {
namespace {

using test::Buffer;
using test::from_hex;
using test::pattern;

// The definition, one bit at a time (spec/mpa 3.2), to check the fast ones against.
uint32_t reference(uint32_t state, Bytes bytes) {
  for (const std::byte b : bytes) {
    state ^= std::to_integer<uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78U : 0);
  }
  return state;
}
uint32_t reference_crc(Bytes bytes) {
  return ~reference(0xffffffffU, bytes);
}

std::string wire_field(uint32_t crc) {
  std::byte field[4];
  store_le32(field, crc);
  return test::to_hex(field);
}

Buffer filled(uint8_t value) {
  return Buffer(32, std::byte{value});
}
Buffer counting(bool up) {
  Buffer b(32);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::byte>(up ? i : 31 - i);
  return b;
}

// RFC 3720 B.4 (spec/examples 11): the CRC field as it stands on the wire.
TEST(Crc32c, Rfc3720Vectors) {
  EXPECT_EQ(wire_field(crc32c(filled(0x00))), "aa 36 91 8a");
  EXPECT_EQ(wire_field(crc32c(filled(0xff))), "43 ab a8 62");
  EXPECT_EQ(wire_field(crc32c(counting(true))), "4e 79 dd 46");
  EXPECT_EQ(wire_field(crc32c(counting(false))), "5c db 3f 11");
  const auto iscsi_read = from_hex(
      "01 c0 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
      "14 00 00 00 00 00 04 00 00 00 00 14 00 00 00 18"
      "28 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00");
  EXPECT_EQ(wire_field(crc32c(iscsi_read)), "56 3a 96 d9");
}

TEST(Crc32c, CheckValueOfTheDigits) {
  EXPECT_EQ(crc32c(test::from_text("123456789")), 0xe3069283U);
}

TEST(Crc32c, OfNothingIsZero) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(Crc32c{}.value(), 0U);
}

TEST(Crc32c, EveryLengthAtEveryAlignment) {
  const Buffer bytes = pattern(1100 + 16, 3);
  for (size_t align = 0; align < 16; ++align) {
    uint32_t expected = 0xffffffffU;
    for (size_t n = 0; n <= 1100; ++n) {
      ASSERT_EQ(crc32c(Bytes{bytes}.subspan(align, n)), ~expected)
          << n << " bytes at alignment " << align;
      expected = reference(expected, Bytes{bytes}.subspan(align + n, 1));
    }
  }
}

TEST(Crc32c, LongBuffers) {
  const Buffer bytes = pattern((1 << 20) + 77, 4);
  for (const size_t n : {size_t{4095}, size_t{4096}, size_t{65535}, size_t{65544}, bytes.size()}) {
    EXPECT_EQ(crc32c(Bytes{bytes}.first(n)), reference_crc(Bytes{bytes}.first(n))) << n;
  }
}

TEST(Crc32c, PiecesGiveTheSameAsTheWhole) {
  SeededRandom random(20);
  const Buffer bytes = pattern(70000, 5);
  for (int round = 0; round < 300; ++round) {
    const size_t most = size_t{1} << random.next() % 17;
    const size_t n = random.next() % (std::min(most, bytes.size()) + 1);
    const Bytes whole = Bytes{bytes}.subspan(random.next() % (bytes.size() - n + 1), n);
    Crc32c crc;
    for (Bytes rest = whole; !rest.empty();) {
      const size_t piece = std::min<size_t>(rest.size(), random.next() % (n / 3 + 2));
      crc.update(rest.first(piece));
      rest = rest.subspan(piece);
    }
    ASSERT_EQ(crc.value(), crc32c(whole)) << n << " bytes in round " << round;
  }
}

TEST(Crc32c, ValueMayBeAskedForInBetween) {
  const Buffer bytes = pattern(600, 6);
  Crc32c crc;
  crc.update(Bytes{bytes}.first(300));
  EXPECT_EQ(crc.value(), reference_crc(Bytes{bytes}.first(300)));
  crc.update(Bytes{bytes}.subspan(300));
  EXPECT_EQ(crc.value(), reference_crc(bytes));
}

TEST(Crc32c, SeesEveryFlippedBit) {
  Buffer bytes = pattern(300, 7);
  const uint32_t before = crc32c(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_NE(crc32c(bytes), before) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

TEST(Crc32cEngines, TheChosenOneIsAmongThem) {
  bool found = false;
  for (const Crc32cEngine& e : crc32c_engines()) {
    found = found || std::string_view{e.name} == crc32c_engine();
  }
  EXPECT_TRUE(found) << crc32c_engine();
  EXPECT_STREQ(crc32c_engines().front().name, "table");
}

TEST(Crc32cEngines, AllAgreeWithTheDefinition) {
  const Buffer bytes = pattern(70000, 8);
  for (const Crc32cEngine& e : crc32c_engines()) {
    for (size_t n = 0; n < 70000 - 8; n += n < 700 ? 1 : n < 5000 ? 191 : 4099) {
      const Bytes part = Bytes{bytes}.subspan(n % 8, n);
      const uint32_t state = 0x12345678U + static_cast<uint32_t>(n);
      ASSERT_EQ(e.run(state, part.data(), n), reference(state, part)) << e.name << ", " << n;
    }
  }
}

// Those that the chosen one does not reach, too.
TEST(Crc32cEngines, CopiesInOnePassAgreeWithTheDefinition) {
  const Buffer from = pattern(70000, 10);
  Buffer to(from.size());
  for (const fold::Implementation* implementation : {fold::by_512_bits(), fold::by_256_bits()}) {
    if (implementation == nullptr) continue;
    const auto& [name, crc, copy] = *implementation;
    for (size_t n = 256; n < 70000 - 8; n += n < 700 ? 1 : n < 5000 ? 97 : 4099) {
      const Bytes part = Bytes{from}.subspan(n % 8, n);
      const uint32_t before = 0x12345678U + static_cast<uint32_t>(n);
      uint32_t state = before;
      std::byte* const at = to.data() + n % 5;
      ASSERT_TRUE(copy(state, at, part.data(), n)) << name << ", " << n;
      ASSERT_EQ(state, reference(before, part)) << name << ", " << n;
      ASSERT_TRUE(std::equal(part.begin(), part.end(), at)) << name << ", " << n;
    }
  }
}

using CopyWithCrc = bool (*)(std::byte* to, Bytes from, Crc32c& crc);

class CopiesWithCrc : public testing::TestWithParam<CopyWithCrc> {};
INSTANTIATE_TEST_SUITE_P(Ways, CopiesWithCrc, testing::Values(copy_with_crc, copy_then_crc),
                         [](const auto& p) {
                           return p.param == copy_with_crc ? "Best" : "InBlocks";
                         });

TEST_P(CopiesWithCrc, EveryLengthAtEveryAlignment) {
  const Buffer from = pattern(1500, 9);
  for (size_t n = 0; n <= 1400; ++n) {
    const size_t from_at = n % 67;
    const size_t to_at = 1 + n % 71;
    Buffer to(1500, std::byte{0xee});
    Crc32c crc;
    crc.update(from_hex("00 22"));
    const Bytes part = Bytes{from}.subspan(from_at, n);
    ASSERT_TRUE(GetParam()(to.data() + to_at, part, crc));
    Buffer expected(1500, std::byte{0xee});
    std::copy(part.begin(), part.end(), expected.begin() + static_cast<ptrdiff_t>(to_at));
    ASSERT_TRUE(to == expected) << n;
    ASSERT_EQ(crc.value(), reference_crc(test::join({from_hex("00 22"), part}))) << n;
  }
}

TEST_P(CopiesWithCrc, LongOnesInAnyPieces) {
  SeededRandom random(21);
  const Buffer from = pattern(100000, 9);
  for (int round = 0; round < 60; ++round) {
    const size_t n = random.next() % (from.size() + 1);
    const Bytes whole = Bytes{from}.last(n);
    Buffer to(n + 1, std::byte{0xee});
    Crc32c crc;
    std::byte* at = to.data();
    for (Bytes rest = whole; !rest.empty();) {
      const size_t piece = std::min<size_t>(rest.size(), random.next() % (n / 2 + 2));
      ASSERT_TRUE(GetParam()(at, rest.first(piece), crc));
      at += piece;
      rest = rest.subspan(piece);
    }
    ASSERT_TRUE(std::equal(whole.begin(), whole.end(), to.begin())) << n;
    ASSERT_EQ(to.back(), std::byte{0xee});
    ASSERT_EQ(crc.value(), reference_crc(whole)) << n;
  }
}

}  // namespace
}  // namespace weft
