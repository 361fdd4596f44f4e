#include "wdp/round_trip.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

// RFC 9002 5.3: "smoothed_rtt = latest_rtt; rttvar = latest_rtt / 2".
TEST(RoundTrip, TheFirstSampleReplacesTheGuess) {
  RoundTrip r;
  EXPECT_FALSE(r.known());
  EXPECT_EQ(r.smoothed(), 100ms);
  r.sample(2ms, 0us);
  EXPECT_TRUE(r.known());
  EXPECT_EQ(r.smoothed(), 2ms);
  EXPECT_EQ(r.least(), 2ms);
}

// RFC 9002 5.3: "smoothed_rtt = 7/8 * smoothed_rtt + 1/8 * adjusted_rtt".
TEST(RoundTrip, LaterOnesAreSmoothed) {
  RoundTrip r;
  r.sample(8ms, 0us);
  r.sample(16ms, 0us);
  EXPECT_EQ(r.smoothed(), 9ms);
  // RFC 9002 5.3: "rttvar = 3/4 * rttvar + 1/4 * rttvar_sample", here 3/4 * 4 ms + 1/4 * 8 ms.
  EXPECT_EQ(r.probe_pause(), 9ms + 4 * 5ms + 100us);
  EXPECT_EQ(r.least(), 8ms);
  EXPECT_EQ(r.latest(), 16ms);
}

// RFC 9002 5.3: the delay of the acknowledgement is taken off, unless less than the least round
// trip would be left.
TEST(RoundTrip, TheDelayOfTheAnswerIsTakenOff) {
  RoundTrip r;
  r.sample(800us, 0us);
  r.sample(900us, 100us);
  EXPECT_EQ(r.smoothed(), 800us);
  r.sample(850us, 100us);
  EXPECT_GT(r.smoothed(), 800us) << "850 us it is: 750 would be below the least";
}

// No peer can say that it waited for longer than it may (spec/wdp-rd 4.1).
TEST(RoundTrip, APeerCannotTakeOffMoreThanItMayWait) {
  RoundTrip r;
  r.sample(1ms, 0us);
  r.sample(9ms, 8ms);
  EXPECT_EQ(r.smoothed(), (7 * Duration{1ms} + Duration{8900us}) / 8);
}

// RFC 9002 6.2.1: "PTO = smoothed_rtt + max(4*rttvar, kGranularity) + max_ack_delay".
TEST(RoundTrip, TheProbePause) {
  RoundTrip r;
  r.sample(8ms, 0us);
  EXPECT_EQ(r.probe_pause(), 8ms + 16ms + 100us);
  RoundTrip lan;
  for (int i = 0; i < 100; ++i) lan.sample(50us, 0us);
  EXPECT_EQ(lan.probe_pause(), 50us + 1ms + 100us);
}

// RFC 9002 6.1.2: "max(kTimeThreshold * max(smoothed_rtt, latest_rtt), kGranularity)".
TEST(RoundTrip, TheLossDelay) {
  RoundTrip r;
  r.sample(8ms, 0us);
  EXPECT_EQ(r.loss_delay(), 10ms);
  r.sample(16ms, 0us);
  EXPECT_EQ(r.loss_delay(), 20ms) << "the latest counts where it is longer";
  RoundTrip lan;
  lan.sample(50us, 0us);
  EXPECT_EQ(lan.loss_delay(), 250us);
}

}  // namespace
}  // namespace weft::wdp
