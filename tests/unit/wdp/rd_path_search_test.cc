#include "wdp/rd_path_search.h"

#include <gtest/gtest.h>

#include "wdp/rd_limits.h"

namespace weft::wdp {
namespace {

constexpr size_t kInterface = 1472;
const size_t kLeast = PathProbe::least(true);

struct RdPathSearchTest : ::testing::Test {
  size_t room(bool certain = false) { return search.segment_room({kInterface, certain}, true); }
  // The next probe is answered.
  bool answer() {
    const auto probe = search.take(now);
    return probe && search.answered(probe->xid, probe->size);
  }

  Time now = Time::from_ns(1'000'000'000);
  SeededRandom random{1};
  RdPathSearch search;
};

TEST_F(RdPathSearchTest, BeginsWhereSomebodyAsks) {
  EXPECT_FALSE(search.ready(now));
  EXPECT_FALSE(search.holds_up());
  EXPECT_TRUE(search.deadline().is_never());
  EXPECT_TRUE(search.begin(kInterface, true, random));
  EXPECT_FALSE(search.begin(kInterface, true, random));
  EXPECT_TRUE(search.ready(now));
  EXPECT_TRUE(search.holds_up());
}

TEST_F(RdPathSearchTest, WhatEachPathCarriesUntilThereIsAnAnswer) {
  search.begin(kInterface, true, random);
  EXPECT_EQ(room(), kLeast);
  EXPECT_EQ(search.bundle_room(true), kLeast);
  EXPECT_TRUE(answer());
  EXPECT_FALSE(search.holds_up());
  EXPECT_EQ(room(), kInterface);
  EXPECT_EQ(search.bundle_room(true), kInterface);
}

TEST_F(RdPathSearchTest, ACertainPathIsNotSearched) {
  EXPECT_EQ(room(true), kInterface);
  EXPECT_FALSE(search.ready(now));
  EXPECT_EQ(search.bundle_room(true), kInterface);
}

TEST_F(RdPathSearchTest, BundlesAreNotAsLargeAsAnyDatagram) {
  EXPECT_EQ(search.segment_room({65000, true}, true), 65000U);
  EXPECT_EQ(search.bundle_room(true), 8192U);
}

TEST_F(RdPathSearchTest, AnotherAnswerSaysNothing) {
  search.begin(kInterface, true, random);
  const auto probe = search.take(now);
  ASSERT_TRUE(probe);
  EXPECT_FALSE(search.answered(Xid{probe->xid.value() + 1}, probe->size));
  EXPECT_FALSE(search.answered(probe->xid, probe->size - 1));
  EXPECT_TRUE(search.holds_up());
}

TEST_F(RdPathSearchTest, HoldsUpNothingForMoreThanASecond) {
  search.begin(kInterface, true, random);
  ASSERT_TRUE(search.take(now));
  const Time end = now + kPathIsFound;
  while (now < end) {
    EXPECT_TRUE(search.holds_up());
    now = search.deadline();
    EXPECT_EQ(search.tick(now), now >= end);
    while (search.ready(now)) ASSERT_TRUE(search.take(now));
  }
  EXPECT_EQ(now, end);
  EXPECT_FALSE(search.holds_up());
  EXPECT_EQ(room(), kLeast);
  EXPECT_FALSE(search.deadline().is_never()) << "it is searched on";
}

TEST_F(RdPathSearchTest, TheKernelMayKnowThatThereIsNoMore) {
  search.limit(1000);
  search.begin(kInterface, true, random);
  search.limit(1200);
  ASSERT_TRUE(answer());
  EXPECT_EQ(room(), 1200U);
  search.limit(kLeast);
  EXPECT_EQ(room(), kLeast);
}

}  // namespace
}  // namespace weft::wdp
