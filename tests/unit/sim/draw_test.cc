#include "sim/draw.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace weft::sim {
namespace {

TEST(Draw, BelowReachesEveryValueAndNoOther) {
  SeededRandom random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(draw_below(random, 7));
  EXPECT_EQ(seen, (std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(draw_below(random, 1), 0U);
}

TEST(Draw, ChanceComesOutAsAsked) {
  SeededRandom random(2);
  for (const double p : {0.0, 0.01, 0.3, 0.5, 0.99, 1.0}) {
    int yes = 0;
    for (int i = 0; i < 20000; ++i) yes += draw_chance(random, p) ? 1 : 0;
    EXPECT_NEAR(yes / 20000.0, p, 0.015) << p;
    if (p == 0.0) {
      EXPECT_EQ(yes, 0);
    }
    if (p == 1.0) {
      EXPECT_EQ(yes, 20000);
    }
  }
}

TEST(Draw, ChanceDrawsOnceWhateverTheProbability) {
  SeededRandom a(3);
  SeededRandom b(3);
  draw_chance(a, 0);
  draw_chance(b, 1);
  EXPECT_EQ(a.next(), b.next());
}

TEST(Draw, UpToIncludesBothEnds) {
  SeededRandom random(4);
  std::set<int64_t> seen;
  for (int i = 0; i < 500; ++i) seen.insert(draw_up_to(random, Duration{3}).count());
  EXPECT_EQ(seen, (std::set<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(draw_up_to(random, Duration{0}), Duration{0});
}

TEST(Draw, SizesStayInBoundsAndFavourSmallOnes) {
  SeededRandom random(5);
  for (const uint64_t most : {1U, 2U, 3U, 7U, 8U, 1000U, 65536U}) {
    bool least = false;
    int upper_half = 0;
    for (int i = 0; i < 4000; ++i) {
      const uint64_t n = draw_size(random, most);
      ASSERT_GE(n, 1U);
      ASSERT_LE(n, most);
      least = least || n == 1;
      upper_half += n > most / 2 ? 1 : 0;
    }
    EXPECT_TRUE(least) << most;
    EXPECT_GT(upper_half, 0) << most;
    if (most >= 1000) {
      EXPECT_LT(upper_half, 800) << most;
    }
  }
}

}  // namespace
}  // namespace weft::sim
