#include "wdp/path_probe.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

struct PathProbeTest : ::testing::Test {
  SeededRandom random{1};
  Time now = Time::from_ns(5'000'000'000);

  // Sizes that are tried until the probe rests; `carries`: what the path does.
  std::vector<size_t> tried(PathProbe& p, size_t carries) {
    std::vector<size_t> sizes;
    for (int i = 0; i < 100 && !p.done(); ++i) {
      if (const auto probe = p.take(now)) {
        sizes.push_back(probe->size);
        if (probe->size <= carries) p.answered(probe->xid, probe->size);
      }
      now = std::max(now, p.deadline());
    }
    return sizes;
  }
};

TEST_F(PathProbeTest, RestsWhenTheLargestIsAnswered) {
  PathProbe p(8952, true, random);
  EXPECT_TRUE(p.ready(now));
  EXPECT_EQ(tried(p, 9000), (std::vector<size_t>{8952}));
  EXPECT_EQ(p.size(), 8952U);
  EXPECT_TRUE(p.deadline().is_never());
  EXPECT_FALSE(p.ready(now));
}

TEST_F(PathProbeTest, GoesDownAfterThreeTries) {
  PathProbe p(8952, true, random);
  EXPECT_EQ(tried(p, 1472), (std::vector<size_t>{8952, 8952, 8952, 4304, 4304, 4304, 1452}));
  EXPECT_EQ(p.size(), 1452U);
}

TEST_F(PathProbeTest, TheLeastNeedsNoAnswer) {
  PathProbe p(1300, true, random);
  EXPECT_EQ(tried(p, 0), (std::vector<size_t>{1300, 1300, 1300, 1232, 1232, 1232}));
  EXPECT_EQ(p.size(), 548U);
  EXPECT_TRUE(p.done());
}

TEST_F(PathProbeTest, OffOrSmallItDoesNothing) {
  EXPECT_TRUE(PathProbe(9000, false, random).done());
  EXPECT_TRUE(PathProbe(548, true, random).done());
  EXPECT_EQ(PathProbe(9000, false, random).size(), 9000U);
}

TEST_F(PathProbeTest, ForeignAnswersMeanNothing) {
  PathProbe p(1452, true, random);
  const auto probe = p.take(now);
  ASSERT_TRUE(probe.has_value());
  p.answered(Xid{probe->xid.value() + 1}, probe->size);
  p.answered(probe->xid, probe->size - 1);
  EXPECT_FALSE(p.done());
  p.answered(probe->xid, probe->size);
  EXPECT_TRUE(p.done());
}

TEST_F(PathProbeTest, WhatTheKernelKnowsCounts) {
  PathProbe p(8952, true, random);
  (void)p.take(now);
  p.limit(1372);
  EXPECT_EQ(p.size(), 1372U);
  p.limit(4000);
  EXPECT_EQ(p.size(), 1372U);
  EXPECT_EQ(tried(p, 1372), (std::vector<size_t>{1372}));
}

}  // namespace
}  // namespace weft::wdp
