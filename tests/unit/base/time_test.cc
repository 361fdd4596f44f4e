#include "base/time.h"

#include <gtest/gtest.h>

#include <concepts>

namespace weft {
namespace {

using namespace std::chrono_literals;

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
static_assert(Addable<Time, Duration>);
static_assert(!Addable<Time, Time>, "two points in time have no sum");
static_assert(!Addable<Time, int64_t>, "a duration has a unit");
static_assert(!std::convertible_to<int64_t, Time>);

TEST(Time, MovesByDurations) {
  const Time t = Time::from_ns(1000);
  EXPECT_EQ((t + 2us).ns(), 3000);
  EXPECT_EQ((t - 400ns).ns(), 600);
  EXPECT_EQ((t + 1ms) - t, Duration{1ms});
  EXPECT_EQ(t - (t + 1s), Duration{-1s});
}

TEST(Time, IsOrdered) {
  EXPECT_LT(Time::from_ns(5), Time::from_ns(6));
  EXPECT_EQ(Time{}, Time::from_ns(0));
  EXPECT_LT(Time::from_ns(INT64_MAX - 1), Time::never());
}

TEST(Time, NeverStaysNever) {
  EXPECT_TRUE(Time::never().is_never());
  EXPECT_FALSE(Time::from_ns(0).is_never());
  EXPECT_TRUE((Time::never() + 1s).is_never());
  EXPECT_TRUE((Time::never() + Duration{-1}).is_never());
}

TEST(Time, ASumThatTheClockWillNotReachIsNever) {
  EXPECT_TRUE((Time::from_ns(INT64_MAX - 10) + 11ns).is_never());
  EXPECT_TRUE((Time::from_ns(1000) + Duration::max()).is_never());
}

}  // namespace
}  // namespace weft
