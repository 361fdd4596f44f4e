#include "bench/method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(SpreadOf, OddNumberHasAMiddleOne) {
  EXPECT_THAT(spread_of({3.0, 9.0, 1.0}), Optional(Spread{.median = 3, .min = 1, .max = 9}));
}

TEST(SpreadOf, EvenNumberHasTheMeanOfTheMiddleTwo) {
  EXPECT_THAT(spread_of({8.0, 1.0, 2.0, 4.0}), Optional(Spread{.median = 3, .min = 1, .max = 8}));
}

TEST(SpreadOf, OneValueIsAllThree) {
  EXPECT_THAT(spread_of({7.5}), Optional(Spread{.median = 7.5, .min = 7.5, .max = 7.5}));
}

TEST(SpreadOf, LeavesOutWhatFailed) {
  EXPECT_THAT(spread_of({std::nullopt, 5.0, std::nullopt, 7.0, 6.0}),
              Optional(Spread{.median = 6, .min = 5, .max = 7}));
}

TEST(SpreadOf, NothingHasNone) {
  EXPECT_EQ(spread_of({}), std::nullopt);
  EXPECT_EQ(spread_of({std::nullopt, std::nullopt}), std::nullopt);
}

TEST(Ratios, AreOfTheSameRepetition) {
  // The medians' ratio would be 20 / 4.
  const Series ours{10.0, 20.0, 60.0};
  const Series theirs{5.0, 4.0, 3.0};
  EXPECT_THAT(ratios(ours, theirs), ElementsAre(Optional(2.0), Optional(5.0), Optional(20.0)));
}

TEST(Ratios, NeedBoth) {
  EXPECT_THAT(ratios({1.0, std::nullopt, 3.0, 8.0}, {std::nullopt, 2.0, 0.0, 2.0}),
              ElementsAre(std::nullopt, std::nullopt, std::nullopt, Optional(4.0)));
}

TEST(Ratios, AreAsManyAsTheShorterOneHas) {
  EXPECT_THAT(ratios({4.0, 9.0}, {2.0}), ElementsAre(Optional(2.0)));
  EXPECT_THAT(ratios({4.0}, {}), IsEmpty());
}

TEST(Percentile, IsAValueThatWasThere) {
  const std::vector<double> sorted{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(percentile(sorted, 0.5), 5);
  EXPECT_EQ(percentile(sorted, 0.9), 9);
  EXPECT_EQ(percentile(sorted, 0.99), 10);
}

TEST(Percentile, EndsAreTheSmallestAndTheLargest) {
  const std::vector<double> sorted{2, 4, 8};
  EXPECT_EQ(percentile(sorted, 0), 2);
  EXPECT_EQ(percentile(sorted, 1), 8);
  EXPECT_EQ(percentile(std::vector<double>{3}, 0.5), 3);
}

}  // namespace
}  // namespace weft::bench
