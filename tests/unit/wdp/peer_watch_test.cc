#include "wdp/peer_watch.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

using Due = PeerWatch::Due;
constexpr Time kStart = Time::from_ns(1'000'000'000);

TEST(PeerWatch, AsksNothingBeforeThePeerWasHeard) {
  EXPECT_TRUE(PeerWatch{}.deadline().is_never());
}

TEST(PeerWatch, AnswersMakeThePausesLonger) {
  PeerWatch w;
  Time now = kStart;
  w.heard(now);
  w.exchanged();
  for (const Duration pause :
       {Duration{250ms}, Duration{1s}, Duration{4s}, Duration{10s}, Duration{10s}}) {
    EXPECT_EQ(w.deadline(), now + pause);
    now = now + pause;
    EXPECT_EQ(w.tick(now - 1ns), Due::nothing);
    EXPECT_EQ(w.tick(now), Due::question);
    w.heard(now);
    w.rested();
  }
  w.heard(now);
  w.exchanged();
  EXPECT_EQ(w.deadline(), now + 250ms);
}

TEST(PeerWatch, ASilentPeerIsGoneAfterFifteenSeconds) {
  for (const bool rests : {false, true}) {
    PeerWatch w;
    w.heard(kStart);
    w.exchanged();
    for (int i = 0; rests && i < 5; ++i) w.rested();
    Time now = kStart;
    uint32_t questions = 0;
    for (;;) {
      now = w.deadline();
      const Due due = w.tick(now);
      if (due == Due::end) break;
      ASSERT_EQ(due, Due::question);
      EXPECT_EQ(w.unanswered(), ++questions);
    }
    EXPECT_EQ(now, kStart + 15s);
    EXPECT_EQ(questions, rests ? 5U : 15U);
    w.heard(now);
    EXPECT_EQ(w.unanswered(), 0U);
  }
}

// This process was stopped, or its machine: what the peer has said meanwhile is not read yet.
TEST(PeerWatch, ATimeInWhichNobodyAskedIsNoSilence) {
  PeerWatch w;
  w.heard(kStart);
  w.exchanged();
  const Time later = kStart + 40s;
  EXPECT_EQ(w.tick(later), Due::question);
  EXPECT_EQ(w.deadline(), later + 1s);
  // The peer is as silent as if it had been asked all the time.
  Time now = later;
  while (w.tick(now = w.deadline()) == Due::question) {
  }
  EXPECT_EQ(now, later + 15s - 250ms);
}

}  // namespace
}  // namespace weft::wdp
