#include "sdp/sockets/transfer_chooser.h"

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
size_t send(TransferChooser& chooser, size_t bytes, size_t size, const Costs& costs) {
  size_t in_place = 0;
  for (size_t sent = 0; sent < bytes; sent += size) {
    const Transfer transfer = chooser.choose(size);
    const double cost = transfer == Transfer::in_place ? costs.in_place : costs.copied;
    if (transfer == Transfer::in_place) in_place += size;
    chooser.record(transfer, size,
                   std::chrono::nanoseconds{std::llround(cost * static_cast<double>(size))});
  }
  return in_place;
}

TEST(TransferChooser, TakesWhatCostsLess) {
  TransferChooser chooser{ZcopyThreshold{}};
  (void)send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 0.1});
  EXPECT_GT(send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 0.1}), kMuch / 2);
  TransferChooser other{ZcopyThreshold{}};
  (void)send(other, kMuch, kSize, {.copied = 0.3, .in_place = 0.9});
  EXPECT_LT(send(other, kMuch, kSize, {.copied = 0.3, .in_place = 0.9}), kMuch / 2);
}

TEST(TransferChooser, NoticesThatCostsHaveChanged) {
  TransferChooser chooser{ZcopyThreshold{}};
  (void)send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 0.1});
  (void)send(chooser, 4 * kMuch, kSize, {.copied = 0.3, .in_place = 2});
  EXPECT_LT(send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 2}), kMuch / 2);
  (void)send(chooser, 4 * kMuch, kSize, {.copied = 0.3, .in_place = 0.1});
  EXPECT_GT(send(chooser, kMuch, kSize, {.copied = 0.3, .in_place = 0.1}), kMuch / 2);
}

// The dearer way is tried less and less often.
TEST(TransferChooser, TriesCostLittleInTheLongRun) {
  TransferChooser chooser{ZcopyThreshold{}};
  (void)send(chooser, 64 * kMuch, kSize, {.copied = 0.3, .in_place = 3});
  EXPECT_LT(send(chooser, 64 * kMuch, kSize, {.copied = 0.3, .in_place = 3}), 64 * kMuch / 50);
}

TEST(TransferChooser, SizesAreJudgedEachForItself) {
  TransferChooser chooser{ZcopyThreshold{}};
  for (int i = 0; i < 2; ++i) {
    (void)send(chooser, kMuch, 32 << 10, {.copied = 0.3, .in_place = 0.9});
    (void)send(chooser, kMuch, 1 << 20, {.copied = 0.3, .in_place = 0.1});
  }
  EXPECT_EQ(chooser.choose(32 << 10), Transfer::copied);
  EXPECT_EQ(chooser.choose(1 << 20), Transfer::in_place);
  EXPECT_EQ(chooser.choose(1000), Transfer::copied);
}

TEST(TransferChooser, AThresholdIsObeyed) {
  TransferChooser chooser{ZcopyThreshold{8192}};
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
