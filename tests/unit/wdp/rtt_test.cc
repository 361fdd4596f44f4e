#include "wdp/rtt.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

TEST(Rtt, TheFirstSampleReplacesTheGuess) {
  Rtt r(500ms);
  EXPECT_TRUE(r.known());
  EXPECT_EQ(r.smoothed(), 500ms);
  r.sample(80us);
  EXPECT_EQ(r.smoothed(), 80us);
}

TEST(Rtt, LaterOnesAreSmoothed) {
  Rtt r(Duration{0});
  EXPECT_FALSE(r.known());
  r.sample(80us);
  r.sample(160us);
  EXPECT_EQ(r.smoothed(), 90us);
  for (int i = 0; i < 100; ++i) r.sample(1ms);
  EXPECT_NEAR(static_cast<double>(r.smoothed().count()), 1e6, 1e4);
}

// spec/wdp-uc 5.5: RTO = clamp(4*SRTT, 10 ms, 1 s).
TEST(Rtt, TheReadTimeoutIsFourTimesItWithinBounds) {
  EXPECT_EQ(Rtt(50us).read_timeout(), 10ms);
  EXPECT_EQ(Rtt(5ms).read_timeout(), 20ms);
  EXPECT_EQ(Rtt(2s).read_timeout(), 1s);
  EXPECT_EQ(Rtt(Duration{0}).read_timeout(), 100ms);
}

}  // namespace
}  // namespace weft::wdp
