#include "wdp/handshake_round_trip.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;

const Time kSaidAt = Time::from_ns(1'000'000'000);

TEST(HandshakeRoundTrip, FromWhatIsSaidToItsAnswer) {
  HandshakeRoundTrip r;
  EXPECT_FALSE(r.value());
  r.said(kSaidAt);
  EXPECT_FALSE(r.value());
  r.answered(kSaidAt + 3ms);
  EXPECT_EQ(r.value(), 3ms);
}

TEST(HandshakeRoundTrip, OfWhatIsRepeatedNobodyKnows) {
  HandshakeRoundTrip r;
  r.said(kSaidAt);
  r.said(kSaidAt + 100ms);
  r.answered(kSaidAt + 101ms);
  EXPECT_FALSE(r.value());
}

// A REQ with the cookie that was asked for.
TEST(HandshakeRoundTrip, AnotherMessageBeginsAnew) {
  HandshakeRoundTrip r;
  r.said(kSaidAt);
  r.said(kSaidAt + 100ms);
  r.begin();
  r.said(kSaidAt + 200ms);
  r.answered(kSaidAt + 205ms);
  EXPECT_EQ(r.value(), 5ms);
}

TEST(HandshakeRoundTrip, AnAnswerToSomethingElseSaysNothing) {
  HandshakeRoundTrip r;
  r.said(kSaidAt);
  r.spoil();
  r.answered(kSaidAt + 3ms);
  EXPECT_FALSE(r.value());
}

}  // namespace
}  // namespace weft::wdp
