#include "shared/pull_cost.h"

#include <gtest/gtest.h>

namespace weft::shared {
namespace {

using namespace std::chrono_literals;

TEST(PullCost, WhereTheKernelCopiesSlowlyPullsBeginLater) {
  const size_t fast = pull_from(2us);
  const size_t slow = pull_from(6us);
  EXPECT_LT(fast, kProbe);
  EXPECT_GT(slow, kProbe);
  EXPECT_EQ(pull_from(1ns), fast);
  EXPECT_EQ(pull_from(1s), slow);
}

TEST(PullCost, ThisMachineHasOneOfTheTwoAndKeepsIt) {
  const config::Options options;
  const size_t here = pull_from(options);
  EXPECT_TRUE(here == pull_from(1ns) || here == pull_from(1s)) << here;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pull_from(options), here);
}

TEST(PullCost, OptionsComeFirst) {
  config::Options options;
  options.pull_from = 12'345;
  EXPECT_EQ(pull_from(options), 12'345U);
  options.same_host = config::SameHost::ring;
  EXPECT_EQ(pull_from(options), kNeverPull);
}

}  // namespace
}  // namespace weft::shared
