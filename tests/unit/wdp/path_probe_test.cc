#include "wdp/path_probe.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

struct PathProbeTest : ::testing::Test {
  SeededRandom random{1};
  Time now = Time::from_ns(5'000'000'000);

  // Sizes that are tried until the probe rests; `carries`: what the path does.
  std::vector<size_t> tried(PathProbe& p, size_t carries, int most = 100) {
    std::vector<size_t> sizes;
    for (int i = 0; i < most && !p.done(); ++i) {
      if (const auto probe = p.take(now)) {
        sizes.push_back(probe->size);
        if (probe->size <= carries) p.answered(probe->xid, probe->size);
      }
      if (!p.ready(now)) now = std::max(now, p.deadline());
    }
    return sizes;
  }
};

TEST_F(PathProbeTest, RestsWhenTheLargestIsAnswered) {
  PathProbe p(8972, true, true, random);
  EXPECT_TRUE(p.ready(now));
  EXPECT_EQ(tried(p, 9000), (std::vector<size_t>{8972}));
  EXPECT_EQ(p.size(), 8972U);
  EXPECT_TRUE(p.deadline().is_never());
  EXPECT_FALSE(p.ready(now));
}

TEST_F(PathProbeTest, GoesDownAfterThreeRoundsInWhichOnlySmallOnesCome) {
  PathProbe p(8972, true, true, random);
  EXPECT_EQ(tried(p, 1472), (std::vector<size_t>{8972, 8972, 64, 8972, 64, 8972, 64, 4324, 64, 4324,
                                                 64, 4324, 64, 1472}));
  EXPECT_EQ(p.size(), 1472U);
}

TEST_F(PathProbeTest, HeadersOfIpv6AreLarger) {
  PathProbe p(8952, false, true, random);
  tried(p, 1452);
  EXPECT_EQ(p.size(), 1452U);
}

TEST_F(PathProbeTest, TheLeastNeedsNoAnswer) {
  PathProbe p(1300, true, true, random);
  EXPECT_EQ(tried(p, 64), (std::vector<size_t>{1300, 1300, 64, 1300, 64, 1300, 64, 1252, 64, 1252,
                                               64, 1252, 64}));
  EXPECT_EQ(p.size(), 548U);
  EXPECT_TRUE(p.done());
  PathProbe six(1300, false, true, random);
  EXPECT_EQ(tried(six, 64), (std::vector<size_t>{1300, 1300, 64, 1300, 64, 1300, 64}));
  EXPECT_EQ(six.size(), 1232U);
}

// One that is stopped for a while is not taken for a path that carries nothing.
TEST_F(PathProbeTest, ASilentPeerSaysNothingOfThePath) {
  PathProbe p(8972, true, true, random);
  const Time start = now;
  EXPECT_EQ(tried(p, 0, 41).size(), 41U);
  EXPECT_EQ(p.size(), 8972U);
  EXPECT_FALSE(p.done());
  // Ever more seldom, until every ten seconds.
  EXPECT_GT(now - start, 100s);
  const Time then = now;
  tried(p, 0, 2);
  EXPECT_EQ(now - then, 10s);
  // Now it runs.
  EXPECT_EQ(tried(p, 9000).size(), 1U);
  EXPECT_EQ(p.size(), 8972U);
}

// The socket may have no room for a while, and nobody is to wake up all the time for that.
TEST_F(PathProbeTest, WhatIsDueIsNoDeadline) {
  PathProbe p(8972, true, true, random);
  EXPECT_TRUE(p.deadline().is_never());
  ASSERT_TRUE(p.take(now).has_value());
  EXPECT_FALSE(p.ready(now));
  EXPECT_EQ(p.deadline(), now + 50ms);
  now = p.deadline();
  p.tick(now);
  EXPECT_TRUE(p.deadline().is_never());
  EXPECT_TRUE(p.ready(now));
  ASSERT_TRUE(p.take(now).has_value());
  EXPECT_EQ(p.deadline(), now + 50ms);
}

// A loss now and then is made good by the next round.
TEST_F(PathProbeTest, TwoLossesAreNotAStep) {
  PathProbe p(8972, true, true, random);
  tried(p, 64, 5);  // two rounds in which the small one alone came
  EXPECT_EQ(tried(p, 9000), (std::vector<size_t>{8972}));
  EXPECT_EQ(p.size(), 8972U);
}

TEST_F(PathProbeTest, OffOrSmallItDoesNothing) {
  EXPECT_TRUE(PathProbe(9000, true, false, random).done());
  EXPECT_TRUE(PathProbe(548, true, true, random).done());
  EXPECT_FALSE(PathProbe(549, true, true, random).done());
  EXPECT_TRUE(PathProbe(1232, false, true, random).done());
  EXPECT_FALSE(PathProbe(1233, false, true, random).done());
  EXPECT_EQ(PathProbe(9000, true, false, random).size(), 9000U);
}

TEST_F(PathProbeTest, ForeignAnswersMeanNothing) {
  PathProbe p(1452, true, true, random);
  const auto probe = p.take(now);
  ASSERT_TRUE(probe.has_value());
  p.answered(Xid{probe->xid.value() + 1}, probe->size);
  p.answered(probe->xid, probe->size - 1);
  EXPECT_FALSE(p.done());
  p.answered(probe->xid, probe->size);
  EXPECT_TRUE(p.done());
}

TEST_F(PathProbeTest, WhatTheKernelKnowsCounts) {
  PathProbe p(8952, true, true, random);
  (void)p.take(now);
  p.limit(1372);
  EXPECT_EQ(p.size(), 1372U);
  p.limit(4000);
  EXPECT_EQ(p.size(), 1372U);
  now = p.deadline();
  EXPECT_EQ(tried(p, 1372), (std::vector<size_t>{1372}));
  PathProbe least(8952, true, true, random);
  least.limit(500);
  EXPECT_TRUE(least.done());
}

}  // namespace
}  // namespace weft::wdp
