#include "wdp/handshake_tries.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;

const Time kTriesBegin = Time::from_ns(1'000'000'000);

// Times after kTriesBegin at which something is said again, each at its deadline, until it is given
// up.
struct Repeats {
  std::vector<Duration> said;
  Time end;
};
Repeats repeats_of(HandshakeTries& tries) {
  Repeats r;
  for (Time now = tries.deadline(); !now.is_never(); now = tries.deadline()) {
    r.end = now;
    if (tries.is_given_up(now)) break;
    EXPECT_TRUE(tries.is_due(now));
    r.said.push_back(now - kTriesBegin);
    tries.repeated(now);
    if (r.said.size() > 20) break;
  }
  return r;
}

TEST(HandshakeTries, NothingIsSaidAtFirst) {
  const HandshakeTries tries;
  EXPECT_TRUE(tries.deadline().is_never());
  EXPECT_FALSE(tries.is_due(kTriesBegin));
  EXPECT_FALSE(tries.is_given_up(kTriesBegin));
}

TEST(HandshakeTries, PausesOfARequest) {
  HandshakeTries tries;
  tries.begin(kTriesBegin);
  EXPECT_EQ(tries.since(), kTriesBegin);
  const Repeats r = repeats_of(tries);
  EXPECT_EQ(r.said, (std::vector<Duration>{100ms, 300ms, 700ms, 1500ms, 3100ms, 6300ms}));
  EXPECT_EQ(r.end, kTriesBegin + kHandshakeFails);
}

TEST(HandshakeTries, AnRtuIsRepeatedAndNeverGivenUp) {
  HandshakeTries tries;
  tries.begin(kTriesBegin - 1s);
  tries.begin_rtu(kTriesBegin);
  EXPECT_EQ(repeats_of(tries).said, (std::vector<Duration>{100ms, 300ms}));
  EXPECT_TRUE(tries.deadline().is_never());
}

// Who is late does not say at once all that it has missed.
TEST(HandshakeTries, WhoIsLateGoesOnWhereTheClockIs) {
  HandshakeTries tries;
  tries.begin(kTriesBegin);
  const Time late = kTriesBegin + 701ms;
  EXPECT_TRUE(tries.is_due(late));
  tries.repeated(late);
  EXPECT_EQ(tries.deadline(), kTriesBegin + 1500ms);
}

TEST(HandshakeTries, APeerThatWaitsPutsOffTheNextTryAndTheEnd) {
  HandshakeTries tries;
  tries.begin(kTriesBegin - 50ms);
  tries.wait(kTriesBegin, 1s);
  EXPECT_EQ(tries.since(), kTriesBegin + 1s);
  const Repeats r = repeats_of(tries);
  EXPECT_EQ(r.said,
            (std::vector<Duration>{1000ms, 1100ms, 1300ms, 1700ms, 2500ms, 4100ms, 7300ms}));
  EXPECT_EQ(r.end, kTriesBegin + 1s + kHandshakeFails);
}

TEST(HandshakeTries, ButNotForEver) {
  HandshakeTries tries;
  tries.begin(kTriesBegin);
  for (Time now = kTriesBegin; now < kTriesBegin + kMostWaiting; now = now + 30s)
    tries.wait(now, 30s);
  EXPECT_FALSE(tries.is_given_up(kTriesBegin + kMostWaiting - 1ns));
  EXPECT_TRUE(tries.is_given_up(kTriesBegin + kMostWaiting)) << "counted from the first WAIT";
}

TEST(HandshakeTries, WhatIsNotRepeatedIsStillGivenUp) {
  HandshakeTries tries;
  tries.begin(kTriesBegin);
  tries.stop_repeating();
  const Repeats r = repeats_of(tries);
  EXPECT_TRUE(r.said.empty());
  EXPECT_EQ(r.end, kTriesBegin + kHandshakeFails);
}

TEST(HandshakeTries, AndMayBeRepeatedAfterAll) {
  HandshakeTries tries;
  tries.begin(kTriesBegin);
  tries.stop_repeating();
  tries.resume(kTriesBegin + 250ms);
  EXPECT_EQ(repeats_of(tries).said, (std::vector<Duration>{350ms, 700ms, 1500ms, 3100ms, 6300ms}));
  HandshakeTries other;
  other.begin(kTriesBegin);
  other.resume(kTriesBegin + 50ms);
  EXPECT_EQ(other.deadline(), kTriesBegin + 100ms) << "it is repeated already";
}

TEST(HandshakeTries, AnAnswerEndsBoth) {
  HandshakeTries tries;
  tries.begin(kTriesBegin);
  tries.stop();
  EXPECT_TRUE(tries.deadline().is_never());
  EXPECT_FALSE(tries.is_due(kTriesBegin + 1h));
  EXPECT_FALSE(tries.is_given_up(kTriesBegin + 1h));
}

TEST(HandshakeTries, AnotherEndMayBeSet) {
  HandshakeTries tries;
  tries.begin(kTriesBegin);
  tries.stop_repeating();
  tries.give_up_at(kTriesBegin + 2s);
  EXPECT_EQ(tries.deadline(), kTriesBegin + 2s);
  EXPECT_TRUE(tries.is_given_up(kTriesBegin + 2s));
}

}  // namespace
}  // namespace weft::wdp
