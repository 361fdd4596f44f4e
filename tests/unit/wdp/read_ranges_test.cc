// What UC Reads have under way, and which of it is lost: spec/wdp-uc 5.5.

#include "wdp/read_ranges.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "wdp/limits.h"

namespace weft::wdp {
namespace {

constexpr uint16_t kStride = 100;

struct ReadRangesTest : ::testing::Test {
  static PendingRead read_of(uint32_t length) {
    PendingRead r;
    r.length = length;
    return r;
  }
  void ask(PendingRead& read, uint32_t begin, uint32_t end, bool alone = false) {
    ranges.add({.read = &read, .begin = begin, .end = end, .alone = alone}, now);
  }
  std::optional<Time> comes(PendingRead& read, uint32_t segment) {
    if (read.stride == 0) {
      read.stride = kStride;
      read.came.reset((read.length + kStride - 1) / kStride);
    }
    read.came.set(segment);
    return ranges.answered(
        read, {.mo = MessageOffset{segment * kStride}, .mlen = read.length, .stride = kStride},
        now);
  }
  using Bounds = std::vector<std::pair<uint32_t, uint32_t>>;
  Bounds lost() {
    Bounds all;
    while (ranges.any_lost()) {
      const ReadRanges::Range r = ranges.take_lost();
      EXPECT_FALSE(r.first_time);
      all.emplace_back(r.begin, r.end);
    }
    return all;
  }

  ReadRanges ranges;
  Time now = Time{} + 1s;
};

TEST_F(ReadRangesTest, ARangeGoesWithItsLastSegment) {
  PendingRead read = read_of(450);
  ask(read, 0, 450);
  for (const uint32_t segment : {0U, 1U, 2U, 4U}) comes(read, segment);
  EXPECT_TRUE(ranges.is_out(read));
  EXPECT_EQ(ranges.bytes_out(), 450u);
  comes(read, 3);
  EXPECT_FALSE(ranges.is_out(read));
  EXPECT_TRUE(ranges.none_out());
  EXPECT_EQ(ranges.bytes_out(), 0u);
}

TEST_F(ReadRangesTest, OnlyTheFirstSegmentOfALoneRangeTellsWhenItWasAskedFor) {
  PendingRead read = read_of(300);
  const Time asked = now;
  ask(read, 0, 300, true);
  now = now + 3ms;
  EXPECT_EQ(comes(read, 0), asked);
  EXPECT_EQ(comes(read, 1), std::nullopt);
  PendingRead other = read_of(300);
  ask(other, 0, 300);
  EXPECT_EQ(comes(other, 0), std::nullopt);
}

TEST_F(ReadRangesTest, AGapBehindWhichSomethingCameIsLostAfterTheBound) {
  PendingRead read = read_of(600);
  ask(read, 0, 600);
  comes(read, 0);
  EXPECT_TRUE(ranges.deadline().is_never()) << "nothing is missing before it";
  comes(read, 3);
  ASSERT_EQ(ranges.deadline(), now + kHoldFor);
  ranges.tick(now + kHoldFor - 1ns);
  EXPECT_FALSE(ranges.any_lost());
  ranges.tick(now + kHoldFor);
  EXPECT_EQ(lost(), (Bounds{{100, 300}})) << "and not what comes behind it";
  EXPECT_EQ(read.attempt, 1u);
  EXPECT_EQ(ranges.bytes_out(), 300u);
  EXPECT_TRUE(ranges.deadline().is_never());
}

TEST_F(ReadRangesTest, WhatCameInTheMeantimeIsNotLost) {
  PendingRead read = read_of(600);
  ask(read, 0, 600);
  comes(read, 4);
  comes(read, 1);
  comes(read, 2);
  ranges.tick(now + kHoldFor);
  EXPECT_EQ(lost(), (Bounds{{0, 100}, {300, 400}}));
}

TEST_F(ReadRangesTest, ARequestBeforeTheOneThatIsAnsweredIsLostWhole) {
  PendingRead first = read_of(250);
  PendingRead second = read_of(250);
  ask(first, 0, 250);
  ask(second, 0, 250);
  comes(second, 0);
  ranges.tick(now + kHoldFor);
  EXPECT_EQ(lost(), (Bounds{{0, 250}}));
  EXPECT_EQ(first.attempt, 1u);
  EXPECT_EQ(second.attempt, 0u);
  EXPECT_FALSE(ranges.is_out(first));
  EXPECT_TRUE(ranges.is_out(second));
}

// Which of two requests a segment answers is not known.
TEST_F(ReadRangesTest, ARangeThatWasAskedForAgainShowsNoLoss) {
  PendingRead read = read_of(300);
  ranges.add({.read = &read, .begin = 0, .end = 300, .first_time = false}, now);
  comes(read, 2);
  EXPECT_TRUE(ranges.deadline().is_never());
}

TEST_F(ReadRangesTest, AllThatIsMissingIsLostWhenTheTimeIsOver) {
  PendingRead read = read_of(1'000);
  PendingRead other = read_of(100);
  ask(read, 0, 500);
  ask(read, 500, 1'000);
  ask(other, 0, 100);
  comes(read, 1);
  comes(read, 9);
  ranges.lose(read);
  EXPECT_TRUE(ranges.is_lost(read));
  EXPECT_EQ(lost(), (Bounds{{0, 100}, {200, 500}, {500, 900}}));
  EXPECT_EQ(read.attempt, 1u);
  EXPECT_EQ(ranges.bytes_out(), 100u) << "the other's";
  EXPECT_FALSE(ranges.is_lost(read));
}

TEST_F(ReadRangesTest, NoMoreThan64AreLostAtATime) {
  PendingRead read = read_of(200 * kStride);
  ask(read, 0, read.length);
  for (uint32_t segment = 1; segment < 200; segment += 2) comes(read, segment);
  ranges.lose(read);
  EXPECT_EQ(ranges.size(), kMostReRequests + 1) << "the rest stays out";
  EXPECT_EQ(lost().size(), kMostReRequests);
  ranges.lose(read);
  EXPECT_EQ(lost().size(), 100 - kMostReRequests);
  EXPECT_TRUE(ranges.none_out());
}

TEST_F(ReadRangesTest, AForgottenReadLeavesNothing) {
  PendingRead read = read_of(600);
  PendingRead other = read_of(100);
  ask(read, 0, 300);
  ask(other, 0, 100);
  ask(read, 300, 600);
  comes(read, 5);
  ranges.lose(read);
  ask(read, 0, 300);
  ranges.forget(read);
  EXPECT_FALSE(ranges.is_out(read));
  EXPECT_FALSE(ranges.is_lost(read));
  EXPECT_EQ(ranges.bytes_out(), 100u);
  ranges.clear();
  EXPECT_EQ(ranges.size(), 0u);
  EXPECT_EQ(ranges.bytes_out(), 0u);
  EXPECT_TRUE(ranges.deadline().is_never());
}

}  // namespace
}  // namespace weft::wdp
