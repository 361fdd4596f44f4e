#include "stream/output/rotation_clock.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace weft::stream {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kPeriod = 10 * kSecond;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kBegin = 1'790'000'000 * kSecond;

// Blocks of all streams, one of each in a second from `from` to `to` - 1; the seconds in which a
// file began.
struct Night {
  explicit Night(const std::vector<int64_t>& its_offsets)
      : offsets(its_offsets.begin(), its_offsets.end()),
        clock(kPeriod, static_cast<uint32_t>(offsets.size())) {}
  std::vector<int64_t> pass(int64_t from, int64_t to) {
    std::vector<int64_t> begun;
    for (int64_t second = from; second < to; ++second) {
      for (uint32_t stream = 0; stream < offsets.size(); ++stream) {
        if (!offsets[stream]) continue;
        if (clock.turns(stream, kBegin + second * kSecond + *offsets[stream]))
          begun.push_back(second);
      }
    }
    return begun;
  }
  void fall_silent(uint32_t stream) { offsets[stream].reset(); }

  std::vector<std::optional<int64_t>> offsets;
  RotationClock clock;
};

TEST(RotationClock, FilesBeginWithPeriods) {
  Night night{{0, 0, 0}};
  EXPECT_EQ(night.pass(3, 35), (std::vector<int64_t>{3, 10, 20, 30}));
}

TEST(RotationClock, OneThatIsAheadHoldsUpNobody) {
  for (const auto& offsets :
       {std::vector<int64_t>{kHour, 0, 0}, {0, kHour, 0}, {-kHour, 0}, {0, -kHour}}) {
    Night night{offsets};
    EXPECT_EQ(night.pass(0, 35), (std::vector<int64_t>{0, 10, 20, 30}));
  }
}

TEST(RotationClock, AClockThatIsSetBackGoesOn) {
  Night night{{0, 0}};
  EXPECT_EQ(night.pass(0, 15), (std::vector<int64_t>{0, 10}));
  night.offsets = {-kHour, -kHour};
  EXPECT_EQ(night.pass(15, 35), (std::vector<int64_t>{20, 30}));
}

TEST(RotationClock, WhenTheLeaderEndsAnotherOneLeads) {
  Night night{{0, 0}};
  EXPECT_EQ(night.pass(0, 15), (std::vector<int64_t>{0, 10}));
  night.fall_silent(0);
  night.clock.over(0);
  EXPECT_EQ(night.pass(15, 35), (std::vector<int64_t>{20, 30}));
}

TEST(RotationClock, AnotherOneLeadsWhenTheLeaderFallsSilent) {
  Night night{{0, 0}};
  EXPECT_EQ(night.pass(0, 15), (std::vector<int64_t>{0, 10}));
  night.fall_silent(0);
  EXPECT_EQ(night.pass(15, 55), (std::vector<int64_t>{30, 40, 50}));
}

}  // namespace
}  // namespace weft::stream
