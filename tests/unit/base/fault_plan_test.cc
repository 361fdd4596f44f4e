#include "base/fault_plan.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace weft {
namespace {

using namespace std::chrono_literals;

std::vector<DatagramFate> fates(const FaultSpec& spec, size_t count, uint64_t direction = 1) {
  FaultPlan plan(spec, direction);
  std::vector<DatagramFate> all;
  for (size_t i = 0; i < count; ++i) all.push_back(plan.next(100));
  return all;
}

TEST(FaultPlan, NothingHappensByDefault) {
  for (const DatagramFate& f : fates({}, 1000)) {
    ASSERT_EQ(f.copies, 1);
    ASSERT_EQ(f.copy[0].delay, 0ns);
    ASSERT_FALSE(f.copy[0].may_be_overtaken);
    ASSERT_EQ(f.copy[0].flips, 0);
  }
}

TEST(FaultPlan, CountsWhatItDoes) {
  FaultPlan plan({.loss = 0.1, .duplicate = 0.2, .reorder = 0.3, .corrupt = 0.4}, 1);
  FaultCounts c;
  for (int i = 0; i < 5000; ++i) {
    const DatagramFate f = plan.next(50);
    ++c.seen;
    c.lost += f.copies == 0;
    c.duplicated += f.copies == 2;
    for (size_t k = 0; k < f.copies; ++k) {
      c.reordered += f.copy[k].may_be_overtaken;
      c.corrupted += f.copy[k].flips > 0;
    }
  }
  EXPECT_EQ(plan.counts().seen, c.seen);
  EXPECT_EQ(plan.counts().lost, c.lost);
  EXPECT_EQ(plan.counts().duplicated, c.duplicated);
  EXPECT_EQ(plan.counts().reordered, c.reordered);
  EXPECT_EQ(plan.counts().corrupted, c.corrupted);
  EXPECT_NEAR(static_cast<double>(c.lost), 500, 80);
  EXPECT_NEAR(static_cast<double>(c.duplicated), 900, 110);
}

// Mean length of the runs of losses, and their share.
void losses(const FaultSpec& spec, double& length, double& share) {
  constexpr size_t kCount = 1'000'000;
  size_t lost = 0;
  size_t runs = 0;
  bool before = false;
  FaultPlan plan(spec, 1);
  for (size_t i = 0; i < kCount; ++i) {
    const bool now = plan.next(100).copies == 0;
    lost += now;
    runs += now && !before;
    before = now;
  }
  length = static_cast<double>(lost) / static_cast<double>(runs);
  share = static_cast<double>(lost) / kCount;
}

TEST(FaultPlan, LossesComeInBurstsOfTheLengthAskedForAndInTheirShare) {
  for (const double loss : {0.01, 0.1, 0.5}) {
    for (const double burst : {1.0, 4.0, 20.0}) {
      double length = 0;
      double share = 0;
      losses({.loss = loss, .burst = burst}, length, share);
      EXPECT_NEAR(share, loss, loss * 0.15) << loss << " " << burst;
      // Without bursts losses meet by chance.
      const double expected = std::max(burst, 1 / (1 - loss));
      EXPECT_NEAR(length, expected, expected * 0.12) << loss << " " << burst;
    }
  }
}

TEST(FaultPlan, AllIsLostWhereAllIsToBeLost) {
  for (const DatagramFate& f : fates({.loss = 1, .burst = 3}, 100)) EXPECT_EQ(f.copies, 0);
}

TEST(FaultPlan, DelaysAddUp) {
  bool late = false;
  for (const DatagramFate& f :
       fates({.reorder = 0.5, .reorder_delay = 100us, .delay = 5us, .jitter = 2us}, 1000)) {
    const auto& c = f.copy[0];
    EXPECT_GE(c.delay, 5us);
    EXPECT_LE(c.delay, c.may_be_overtaken ? 107us : 7us);
    late = late || c.delay > 50us;
  }
  EXPECT_TRUE(late);
}

TEST(FaultPlan, DamageFlipsOneToThreeBitsAndFlipsThemBack) {
  std::array<bool, 4> seen{};
  for (const size_t size : {1U, 2U, 40U, 1500U}) {
    FaultPlan plan({.corrupt = 1}, 1);
    for (int i = 0; i < 100; ++i) {
      const auto c = plan.next(size).copy[0];
      std::vector<std::byte> bytes(size);
      c.damage(bytes);
      int bits = 0;
      for (const std::byte b : bytes) bits += std::popcount(std::to_integer<unsigned>(b));
      ASSERT_EQ(bits, c.flips);
      ASSERT_GE(bits, 1);
      ASSERT_LE(bits, 3);
      seen[static_cast<size_t>(bits)] = true;
      c.damage(bytes);
      ASSERT_EQ(bytes, std::vector<std::byte>(size));
    }
  }
  EXPECT_TRUE(seen[1] && seen[2] && seen[3]);
}

TEST(FaultPlan, AnEmptyDatagramCannotBeDamaged) {
  FaultPlan plan({.corrupt = 1}, 1);
  EXPECT_EQ(plan.next(0).copy[0].flips, 0);
  EXPECT_EQ(plan.counts().corrupted, 0U);
}

TEST(FaultPlan, SeedAndDirectionMakeTheRun) {
  const auto lost = [](uint64_t seed, uint64_t direction) {
    std::vector<bool> all;
    for (const auto& f : fates({.loss = 0.3, .seed = seed}, 200, direction)) {
      all.push_back(f.copies == 0);
    }
    return all;
  };
  EXPECT_EQ(lost(5, 1), lost(5, 1));
  EXPECT_NE(lost(5, 1), lost(6, 1));
  EXPECT_NE(lost(5, 1), lost(5, 2));
}

}  // namespace
}  // namespace weft
