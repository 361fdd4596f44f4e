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

struct SteadyPoller {
  Duration poll(Duration after, uint64_t room = 0) {
    now = now + after;
    taken += room;
    const Duration p = policy.patience(now, taken, patience);
    put_off += policy.put_off(now, patience) ? 1 : 0;
    return p;
  }
  Duration poll_on(int n, Duration after, uint64_t room = 0) {
    for (int i = 1; i < n; ++i) poll(after, room);
    return poll(after, room);
  }
  Duration patience = 1ms;
  SteadyPolicy policy;
  Time now = Time::from_ns(1'000'000'000);
  uint64_t taken = 0;
  int put_off = 0;
};

TEST(SteadyPolicy, WhoPollsForLongIsWatchedLessClosely) {
  SteadyPoller p;
  for (int i = 0; i < 51; ++i) EXPECT_EQ(p.poll(999us), 1ms) << i;
  EXPECT_EQ(p.put_off, 0);
  // From now on; and the timer is set every 3 ms, so that it is never nearer than 1 ms.
  for (int i = 0; i < 300; ++i) EXPECT_EQ(p.poll(100us), 4ms) << i;
  EXPECT_EQ(p.put_off, 10);
  // After a pause it has to prove itself anew.
  EXPECT_EQ(p.poll(1001us), 1ms);
  EXPECT_EQ(p.poll(1us), 1ms);
  EXPECT_EQ(p.put_off, 10);
}

// What comes has to find room until the helper comes: a tenth of it in a millisecond does in four,
// a fifth does not.
TEST(SteadyPolicy, WhereMuchComesAllIsAsAlways) {
  SteadyPoller p;
  constexpr uint64_t kLittle = SteadyPolicy::kRoom / 100;
  constexpr uint64_t kMuch = SteadyPolicy::kRoom / 50;
  EXPECT_EQ(p.poll_on(600, 100us, kLittle), 4ms);
  EXPECT_EQ(p.poll_on(20, 100us, kMuch), 1ms);
  EXPECT_EQ(p.poll_on(600, 100us, kMuch), 1ms);
  EXPECT_EQ(p.poll_on(600, 100us, kLittle), 4ms);
}

// As `weft stream` has it, which looks every few milliseconds.
TEST(SteadyPolicy, APatienceThatIsLongByItselfStays) {
  SteadyPoller p;
  p.patience = 10ms;
  EXPECT_EQ(p.poll_on(200, 1ms), 10ms);
  EXPECT_EQ(p.put_off, 0);
  SteadyPoller other;
  other.patience = 2ms;
  EXPECT_EQ(other.poll_on(200, 1ms), 4ms);
}

}  // namespace
}  // namespace weft::engine
