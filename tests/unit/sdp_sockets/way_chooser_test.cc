#include "sdp/sockets/way_chooser.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::sdp {
namespace {

constexpr size_t kSize = 256 << 10;
constexpr size_t kMuch = size_t{64} << 20;

struct Costs {
  double copied = 0;  // nanoseconds a byte
  double in_place = 0;
};

// Sends `bytes` in pieces of `size`; how many of them went in place.
size_t send(WayChooser& chooser, size_t bytes, size_t size, const Costs& costs) {
  size_t in_place = 0;
  for (size_t sent = 0; sent < bytes; sent += size) {
    const Way way = chooser.choose(size);
    const double cost = way == Way::in_place ? costs.in_place : costs.copied;
    if (way == Way::in_place) in_place += size;
    chooser.record(way, size,
                   std::chrono::nanoseconds{std::llround(cost * static_cast<double>(size))});
  }
  return in_place;
}

TEST(WayChooser, TakesWhatCostsLess) {
  WayChooser chooser{ZcopyThreshold{}};
  (void)send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 0.1});
  EXPECT_GT(send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 0.1}), kMuch / 2);
  WayChooser other{ZcopyThreshold{}};
  (void)send(other, kMuch, kSize, {.copied = 0.3, .in_place = 0.9});
  EXPECT_LT(send(other, kMuch, kSize, {.copied = 0.3, .in_place = 0.9}), kMuch / 2);
}

TEST(WayChooser, NoticesThatCostsHaveChanged) {
  WayChooser chooser{ZcopyThreshold{}};
  (void)send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 0.1});
  (void)send(chooser, 4 * kMuch, kSize, {.copied = 0.3, .in_place = 2});
  EXPECT_LT(send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 2}), kMuch / 2);
  (void)send(chooser, 4 * kMuch, kSize, {.copied = 0.3, .in_place = 0.1});
  EXPECT_GT(send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 0.1}), kMuch / 2);
}

// The dearer way is tried less and less often.
TEST(WayChooser, TriesCostLittleInTheLongRun) {
  WayChooser chooser{ZcopyThreshold{}};
  (void)send(chooser, 64 * kMuch, kSize, {.copied = 0.3, .in_place = 3});
  EXPECT_LT(send(chooser, 64 * kMuch, kSize, {.copied = 0.3, .in_place = 3}), 64 * kMuch / 50);
}

TEST(WayChooser, SizesAreJudgedEachForItself) {
  WayChooser chooser{ZcopyThreshold{}};
  for (int i = 0; i < 2; ++i) {
    (void)send(chooser, kMuch, 32 << 10, {.copied = 0.3, .in_place = 0.9});
    (void)send(chooser, kMuch, 1 << 20, {.copied = 0.3, .in_place = 0.1});
  }
  EXPECT_EQ(chooser.choose(32 << 10), Way::copied);
  EXPECT_EQ(chooser.choose(1 << 20), Way::in_place);
  EXPECT_EQ(chooser.choose(1000), Way::copied);
}

TEST(WayChooser, AThresholdIsObeyed) {
  WayChooser chooser{ZcopyThreshold{8192}};
  EXPECT_EQ(send(chooser, kMuch, 8192, {.copied = 0.1, .in_place = 9}), kMuch);
  EXPECT_EQ(send(chooser, kMuch, 8191, {.copied = 9, .in_place = 0.1}), 0U);
  chooser.set_threshold(ZcopyThreshold{ZcopyThreshold::kNever});
  EXPECT_EQ(send(chooser, kMuch, 1 << 20, {.copied = 9, .in_place = 0.1}), 0U);
}

TEST(ZcopyThreshold, IsRead) {
  EXPECT_EQ(ZcopyThreshold::parse("auto")->bytes, ZcopyThreshold::kByCost);
  EXPECT_EQ(ZcopyThreshold::parse("0")->bytes, ZcopyThreshold::kNever);
  EXPECT_EQ(ZcopyThreshold::parse("65536")->bytes, 65536);
  for (const char* wrong : {"", "-1", "1", "4095", "64k", "never", " 1", "99999999999"}) {
    EXPECT_FALSE(ZcopyThreshold::parse(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace weft::sdp
