#include "drive/pacer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::drive {
namespace {

using namespace std::chrono_literals;

TEST(Pacer, ATrainCostsItsTime) {
  Pacer p{8};  // a byte in a nanosecond
  const Time start = Time::from_ns(1'000'000'000);
  EXPECT_LE(p.next(), start);
  p.sent(5'000'000, start);
  EXPECT_EQ(p.next(), start + 4ms);  // less the moment that it may catch up
  p.sent(1000, p.next());
  EXPECT_EQ(p.next(), start + 4ms + 1us);
}

TEST(Pacer, CatchesUpForAMomentAlone) {
  Pacer p{8};
  Time now = Time::from_ns(1'000'000'000);
  p.sent(10'000'000, now);
  // Each turn comes 100 us late, and the mean is kept.
  for (int i = 0; i < 100; ++i) {
    now = p.next() + 100us;
    const Time before = p.next();
    p.sent(500'000, now);
    EXPECT_EQ(p.next() - before, 500us);
  }
  // After a long pause it does not make up for all of it.
  now = now + 1s;
  p.sent(1000, now);
  EXPECT_EQ(p.next(), now - 1ms + 1us);
}

TEST(Pacer, TrainsOfAMillisecond) {
  EXPECT_EQ(Pacer{0.08}.most(), 10'000U);
  EXPECT_EQ(Pacer{1e-9}.most(), 0U);  // a datagram always goes
  EXPECT_GE(Pacer{8}.most(), 65'536U);
  EXPECT_GE(Pacer{0}.most(), 65'536U);
}

// A sender that is always in time: what has left when a train leaves is what the rate lets out in
// the time since the first one and the millisecond that may be caught up, no more and no less.
TEST(Pacer, LetsOutWhatTheRateSaysAndOneTrain) {
  for (const bool of_path : {false, true}) {
    for (const double gbps : {0.001, 0.2, 2.5, 8.0, 100.0}) {
      SCOPED_TRACE(testing::Message() << gbps << (of_path ? " of the path" : ""));
      Pacer p{of_path ? 0 : gbps};
      const size_t train = std::clamp<size_t>(Pacer{gbps}.most(), 100, 65'000);
      const Time start = Time::from_ns(1'000'000'000);
      Time now = start;
      uint64_t out = 0;
      uint64_t waits = 0;
      for (int i = 0; i < 2000; ++i) {
        if (p.next() > now) {
          now = p.next();
          ++waits;
          const double due = static_cast<double>(out) * 8 / gbps - 1e6;
          const double late = static_cast<double>((now - start).count()) - due;
          ASSERT_LT(late, 1) << out;
          // Each train is paid for in whole nanoseconds.
          ASSERT_GT(late, -1.0 - i) << out;
        }
        p.sent(train, now, of_path ? gbps : 0);
        out += train;
      }
      EXPECT_GT(waits, 1500U);
    }
  }
}

TEST(Pacer, ARateOfNextToNothingIsAnHourForADatagram) {
  Pacer p{1e-300};
  const Time start = Time::from_ns(1'000'000'000);
  p.sent(1000, start);
  EXPECT_EQ(p.next(), start - 1ms + 3600s);
}

TEST(Pacer, TheSlowerOfTwoRatesCounts) {
  const Time start = Time::from_ns(1'000'000'000);
  for (const auto& [own, path] : {std::pair{8.0, 80.0}, {80.0, 8.0}, {0.0, 8.0}, {8.0, 0.0}}) {
    Pacer p{own};
    p.sent(5'000'000, start, path);
    EXPECT_EQ(p.next(), start + 4ms) << own << ' ' << path;
  }
  // Of one train only: the next one goes another way.
  Pacer p{0};
  p.sent(5'000'000, start, 8);
  const Time next = p.next();
  p.sent(5'000'000, next);
  EXPECT_EQ(p.next(), next);
}

TEST(Pacer, NoRateIsNoDelay) {
  Pacer p{0};
  p.sent(100'000'000, Time::from_ns(5));
  EXPECT_LE(p.next(), Time::from_ns(5));
}

}  // namespace
}  // namespace weft::drive
