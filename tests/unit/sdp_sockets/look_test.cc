#include "sdp/sockets/look.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace weft::sdp {
namespace {

using How = LookTime::How;

// How often each way was taken in `waits`, where `pays` says what a look comes to.
struct Taken {
  std::array<int, 3> times{};
  int operator[](How how) const { return times[static_cast<size_t>(how)]; }
};
Taken take(LookTime& look_time, int waits, const std::function<bool(How)>& pays) {
  Taken taken;
  for (int i = 0; i < waits; ++i) {
    const How how = look_time.next();
    ++taken.times[static_cast<size_t>(how)];
    if (how != How::sleep) look_time.result(how, pays(how));
  }
  return taken;
}
bool always(How) {
  return true;
}
bool never(How) {
  return false;
}
// As where another process has the other processor.
bool by_yields(How how) {
  return how == How::yield;
}

TEST(LookTime, KeepsTheProcessorWhileThatPays) {
  LookTime look_time;
  EXPECT_EQ(take(look_time, 1000, always)[How::keep], 1000);
}

TEST(LookTime, SleepsWhereLooksAreInVain) {
  LookTime look_time;
  (void)take(look_time, 100, never);
  const Taken taken = take(look_time, 100'000, never);
  EXPECT_NEAR(taken[How::keep], 100'000 / 32, 10);
  EXPECT_GT(taken[How::yield], 5);
  EXPECT_LT(taken[How::yield], 30);
}

TEST(LookTime, YieldsWhereOnlyThatPays) {
  LookTime look_time;
  (void)take(look_time, 200, by_yields);
  const Taken taken = take(look_time, 10'000, by_yields);
  EXPECT_EQ(taken[How::sleep], 0);
  EXPECT_GT(taken[How::yield], 9'900);
  // Whether it pays to keep the processor is tried now and then.
  EXPECT_GT(taken[How::keep], 10);
}

TEST(LookTime, KeepsAgainWhenThatPays) {
  LookTime look_time;
  (void)take(look_time, 10'000, by_yields);
  (void)take(look_time, 1'000, always);
  EXPECT_EQ(take(look_time, 100, always)[How::keep], 100);
}

TEST(LookTime, YieldsNoMoreWhenThatDoesNotPay) {
  LookTime look_time;
  (void)take(look_time, 10'000, by_yields);
  EXPECT_LT(take(look_time, 1'000, never)[How::yield], 15);
}

}  // namespace
}  // namespace weft::sdp
