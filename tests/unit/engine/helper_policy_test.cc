#include "engine/helper_policy.h"

#include <gtest/gtest.h>

namespace weft::engine {
namespace {

using namespace std::chrono_literals;

TEST(HelperPolicy, BeginsWithTheMost) {
  EXPECT_EQ(HelperPolicy(1ms).patience(), 1ms);
}

// docs/design/02: doubled for a program that was at it, divided by four when something had been
// waiting, down to 4 us.
TEST(HelperPolicy, LearnsFromWhatItFinds) {
  HelperPolicy p(1ms);
  p.took_over(true);
  EXPECT_EQ(p.patience(), 250us);
  p.took_over(false);
  EXPECT_EQ(p.patience(), 250us) << "nothing was waiting: no harm was done";
  p.program_was_active();
  EXPECT_EQ(p.patience(), 500us);
}

// Patience that grew while the program polled is not the measure of the next time.
TEST(HelperPolicy, FallsBackWhenTheProgramStops) {
  HelperPolicy p(1ms);
  for (int i = 0; i < 3; ++i) p.took_over(true);
  const Duration quick = p.patience();
  EXPECT_LT(quick, 20us);
  p.program_was_active();
  p.program_was_active();
  EXPECT_EQ(p.patience(), 4 * quick);
  p.took_over(false);
  EXPECT_EQ(p.patience(), quick);
  // One that polls for long is left alone from then on.
  while (p.patience() < 1ms) p.program_was_active();
  p.took_over(false);
  EXPECT_EQ(p.patience(), 1ms);
}

TEST(HelperPolicy, KeepsWithinItsBounds) {
  HelperPolicy p(1ms);
  for (int i = 0; i < 20; ++i) p.took_over(true);
  EXPECT_EQ(p.patience(), 4us);
  for (int i = 0; i < 20; ++i) p.program_was_active();
  EXPECT_EQ(p.patience(), 1ms);
}

TEST(HelperPolicy, AWordFromTheUserBelowTheLeast) {
  HelperPolicy p(0ns);
  EXPECT_EQ(p.patience(), 4us);
  p.program_was_active();
  EXPECT_EQ(p.patience(), 4us);
}

constexpr size_t kTrain = 64 << 10;
const Time kStart = Time::from_ns(1'000'000'000);

TEST(HeldPolicy, LooksLessOftenWhileItFindsTheEngineHeld) {
  HeldPolicy p;
  Duration before = p.found_held();
  for (int i = 0; i < 4; ++i) {
    const Duration next = p.found_held();
    EXPECT_EQ(next, before * 2);
    before = next;
  }
  EXPECT_EQ(p.found_held(), before);
  p.found_free();
  EXPECT_LT(p.found_held(), before);
}

TEST(RestPolicy, RestsWhileMuchComesInCloseTogether) {
  RestPolicy p{100us};
  EXPECT_EQ(p.after(kTrain, kStart, Time{}), 0us);  // the first, after a long time
  EXPECT_EQ(p.after(kTrain, kStart + 300us, Time{}), 100us);
  EXPECT_EQ(p.after(kTrain, kStart + 600us, Time{}), 100us);
  EXPECT_EQ(p.after(100, kStart + 700us, Time{}), 0us);  // a message of 100 bytes
  EXPECT_EQ(p.after(kTrain, kStart + 6ms, Time{}), 0us);
}

TEST(RestPolicy, NotWhereTheProgramTakesTurns) {
  RestPolicy p{100us};
  EXPECT_EQ(p.after(kTrain, kStart, kStart), 0us);
  EXPECT_EQ(p.after(kTrain, kStart + 300us, kStart + 200us), 0us);
  EXPECT_EQ(p.after(kTrain, kStart + 600us, kStart + 500us), 0us);
  EXPECT_EQ(p.after(kTrain, kStart + 900us, kStart + 500us), 100us);  // it has stopped
}

TEST(RestPolicy, ALongRestIsNoPause) {
  RestPolicy p{5ms};
  EXPECT_EQ(p.after(kTrain, kStart, Time{}), 0us);
  EXPECT_EQ(p.after(kTrain, kStart + 6ms, Time{}), 5ms);
  EXPECT_EQ(p.after(kTrain, kStart + 12ms, Time{}), 5ms);
}

TEST(RestPolicy, NeverWhereTheUserWantsNone) {
  RestPolicy p{0us};
  EXPECT_EQ(p.after(1 << 20, kStart, Time{}), 0us);
  EXPECT_EQ(p.after(1 << 20, kStart + 10us, Time{}), 0us);
}

TEST(SpinPolicy, SpinsAsLongAsItPays) {
  SpinPolicy p(20us);
  EXPECT_EQ(p.spin(), 20us);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(p.spin(), 20us);
    p.result(true);
  }
}

TEST(SpinPolicy, StopsWhenItDoesNotAndTriesNowAndThen) {
  SpinPolicy p(20us);
  for (int i = 0; i < 100; ++i) p.result(false);
  int spins = 0;
  for (int i = 0; i < 640; ++i) spins += p.spin() > 0ns;
  EXPECT_EQ(spins, 10) << "one in 64";
  for (int i = 0; i < 20; ++i) p.result(true);
  EXPECT_EQ(p.spin(), 20us) << "and comes back";
}

TEST(SpinPolicy, NoSpinningWhereTheUserWantsNone) {
  SpinPolicy p(0ns);
  EXPECT_EQ(p.spin(), 0ns);
}

TEST(SteadyPolicy, WhoPollsForLongIsWatchedLessClosely) {
  SteadyPolicy policy;
  Time now = Time::from_ns(1'000'000'000);
  Time last;
  uint64_t bytes = 0;
  int put_off = 0;
  const auto poll = [&](Duration after) {
    now = now + after;
    const Duration p = policy.patience(last, now, bytes, 1ms);
    put_off += policy.put_off(now, 1ms) ? 1 : 0;
    last = now;
    return p;
  };
  for (int i = 0; i < 50; ++i) EXPECT_EQ(poll(999us), 1ms) << i;
  EXPECT_EQ(put_off, 0);
  poll(999us);
  // From now on; and the timer is set every 3 ms, so that it is never nearer than 1 ms.
  for (int i = 0; i < 300; ++i) EXPECT_EQ(poll(100us), 4ms) << i;
  EXPECT_EQ(put_off, 10);
  // After a pause it has to prove itself anew.
  EXPECT_EQ(poll(1001us), 1ms);
  EXPECT_EQ(poll(1us), 1ms);
  EXPECT_EQ(put_off, 10);
  // 1.6 Gb/s is not much, 3.2 Gb/s is: it has to find room until the helper comes.
  const auto stream = [&](uint64_t each, int n) {
    for (int i = 0; i < n - 1; ++i, bytes += each) poll(100us);
    return poll(100us);
  };
  EXPECT_EQ(stream(20'000, 600), 4ms);
  EXPECT_EQ(stream(40'000, 20), 1ms);
  EXPECT_EQ(stream(40'000, 600), 1ms);
  EXPECT_EQ(stream(20'000, 600), 4ms);
}

// As `weft stream` has it, which looks every few milliseconds.
TEST(SteadyPolicy, APatienceThatIsLongByItselfStays) {
  SteadyPolicy policy;
  for (int i = 1; i < 200; ++i) {
    const Time now = Time::from_ns(1'000'000 * i);
    EXPECT_EQ(policy.patience(now - 1ms, now, 0, 10ms), 10ms);
    EXPECT_FALSE(policy.put_off(now, 10ms));
    EXPECT_EQ(policy.patience(now - 1ms, now, 0, 2ms), i >= 50 ? 4ms : 2ms) << i;
  }
}

}  // namespace
}  // namespace weft::engine
