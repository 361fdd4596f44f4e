#include "wdp/segment_map.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/draw.h"

namespace weft::wdp {
namespace {

TEST(SegmentMap, IsFullWhenEachHasComeOnce) {
  for (const uint32_t n : {1U, 2U, 63U, 64U, 65U, 1000U}) {
    SegmentMap m;
    m.reset(n);
    for (uint32_t i = 0; i < n; ++i) {
      EXPECT_FALSE(m.full());
      EXPECT_EQ(m.missing(), n - i);
      // 7 and n have no common factor here, or n is 1.
      const uint32_t k = n == 63 ? i * 5 % n : i * 7 % n;
      EXPECT_FALSE(m.test(k));
      EXPECT_TRUE(m.set(k));
      EXPECT_FALSE(m.set(k));
      EXPECT_TRUE(m.test(k));
    }
    EXPECT_TRUE(m.full());
    m.reset(n);
    EXPECT_EQ(m.missing(), n);
    EXPECT_FALSE(m.test(n - 1));
  }
}

TEST(SegmentMap, FindsRunsAsABitByBitSearchDoes) {
  SeededRandom random(3);
  SegmentMap m;
  constexpr uint32_t kSize = 300;
  m.reset(kSize);
  std::vector<bool> there(kSize);
  for (int step = 0; step < 400; ++step) {
    const auto i = static_cast<uint32_t>(draw_below(random, kSize));
    m.set(i);
    there[i] = true;
    const auto from = static_cast<uint32_t>(draw_below(random, kSize + 1));
    const auto end = static_cast<uint32_t>(from + draw_below(random, kSize + 1 - from));
    for (const bool wanted : {false, true}) {
      uint32_t expected = from;
      while (expected < end && there[expected] != wanted) ++expected;
      ASSERT_EQ(wanted ? m.next_present(from, end) : m.next_missing(from, end), expected)
          << from << " to " << end;
    }
  }
}

}  // namespace
}  // namespace weft::wdp
