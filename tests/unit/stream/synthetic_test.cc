#include "stream/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <set>

namespace weft::stream {
namespace {

int16_t sample(ConstPacket payload, size_t part) {
  return static_cast<int16_t>(static_cast<uint16_t>(payload[2 * part]) |
                              static_cast<uint16_t>(payload[2 * part + 1]) << 8);
}

// The first parts of the table, computed by hand from the formula in docs/streams-reference.md.
TEST(Synthetic, FirstSamples) {
  const Synthetic synthetic{Shape{}};
  const ConstPacket p = synthetic.payload(0, 0);
  for (uint64_t i = 0; i < 4; ++i) {
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 32;
    int noise = -30;
    for (const unsigned shift : {0, 8, 16, 24}) noise += static_cast<int>(x >> shift & 15);
    EXPECT_EQ(sample(p, i), noise + (i % 2 == 0 ? 64 : 0)) << i;
  }
}

// What a filter bank would look for: 8 samples a turn, in each beamlet, over the ends of packets.
TEST(Synthetic, ToneGoesOnFromPacketToPacket) {
  const Shape shape;
  const Synthetic synthetic{shape};
  constexpr size_t kBeamlet = 40;
  std::complex<double> sum;
  size_t turn = 0;
  for (uint64_t n = 1000; n < 1064; ++n) {
    const ConstPacket p = synthetic.payload(3, n);
    for (size_t slice = 0; slice < shape.slices; ++slice, ++turn) {
      const size_t part = (kBeamlet * shape.slices + slice) * 4;
      const std::complex<double> x(sample(p, part), sample(p, part + 1));
      sum += x * std::polar(1.0, -2 * M_PI * static_cast<double>(turn) / 8);
    }
  }
  EXPECT_NEAR(std::abs(sum) / static_cast<double>(turn), 64, 3);
}

TEST(Synthetic, NeighboursInTimeAndPlaceDiffer) {
  const Synthetic synthetic{Shape{}};
  std::set<const std::byte*> begins;
  for (uint64_t n = 0; n < 512; ++n) begins.insert(synthetic.payload(1, n).data());
  EXPECT_EQ(begins.size(), 512U);
  EXPECT_NE(synthetic.payload(1, 5).data(), synthetic.payload(2, 5).data());
}

TEST(Synthetic, LongPacketsGoAroundTheTable) {
  const Shape shape{.format = Format::raw, .payload = 65'000};
  const Synthetic synthetic{shape};
  // 3 * 167 % 512 = 501: 64128 bytes into the table of 65536.
  const ConstPacket late = synthetic.payload(0, 3);
  const ConstPacket first = synthetic.payload(0, 0);
  ASSERT_EQ(late.size(), 65'000U);
  EXPECT_TRUE(std::equal(late.begin() + 1408, late.end(), first.begin()));
}

}  // namespace
}  // namespace weft::stream
