#include "base/wall_clock.h"

#include <gtest/gtest.h>

#include <chrono>

namespace weft {
namespace {

TEST(WallClock, IsThatOfTheSystem) {
  using std::chrono::system_clock;
  const auto now = [] {
    return std::chrono::nanoseconds{system_clock::now().time_since_epoch()}.count();
  };
  const int64_t before = now();
  const int64_t asked = wall_clock_ns();
  EXPECT_LE(before, asked);
  EXPECT_LE(asked, now());
}

}  // namespace
}  // namespace weft
