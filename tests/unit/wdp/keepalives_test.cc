#include "wdp/keepalives.h"

#include <gtest/gtest.h>

#include "wdp/limits.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using Due = Keepalives::Due;

const Time kBegin = Time{} + 100s;

TEST(Keepalives, ASilentPeerIsAskedFiveTimesAndThenLost) {
  Keepalives k{false, kBegin};
  Time now = kBegin + kKeepaliveAfter;
  EXPECT_EQ(k.deadline(), now);
  EXPECT_EQ(k.tick(now - 1ms), Due::nothing);
  for (uint32_t i = 0; i < kKeepaliveTries; ++i) {
    EXPECT_EQ(k.tick(now), Due::ask) << i;
    (void)k.ask(now, true);
    EXPECT_EQ(k.deadline(), now + kKeepaliveEvery);
    EXPECT_EQ(k.tick(now), Due::nothing) << "not twice";
    now = k.deadline();
  }
  EXPECT_EQ(k.unanswered_since(), kBegin + kKeepaliveAfter);
  EXPECT_EQ(k.tick(now), Due::lost);
  EXPECT_TRUE(k.deadline().is_never());
}

TEST(Keepalives, WhatComesPutsOffTheQuestion) {
  Keepalives k{false, kBegin};
  k.heard(kBegin + 6s);
  EXPECT_EQ(k.tick(kBegin + kKeepaliveAfter), Due::nothing);
  EXPECT_EQ(k.deadline(), kBegin + 6s + kKeepaliveAfter);
  EXPECT_EQ(k.tick(k.deadline()), Due::ask);
  k.heard(k.deadline());
  EXPECT_TRUE(k.unanswered_since().is_never());
}

TEST(Keepalives, AStaticSessionAsksNothingByItself) {
  const Keepalives k{true, kBegin};
  EXPECT_TRUE(k.deadline().is_never());
}

TEST(Keepalives, EachHasANumberOfItsOwn) {
  Keepalives k{false, kBegin};
  const Xid first = k.ask(kBegin, false);
  const Xid second = k.ask(kBegin, true);
  EXPECT_EQ(second.value(), first.value() + 1) << "in the same millisecond";
}

// Of those between the first and the last it is not known when they left.
TEST(Keepalives, AnAnswerIsTimedFromItsQuestion) {
  Keepalives k{false, kBegin};
  (void)k.ask(kBegin, false);
  const Xid second = k.ask(kBegin + 2ms, true);
  const Xid last = k.ask(kBegin + 6ms, true);
  Keepalives other = k;
  EXPECT_EQ(k.answered(last, kBegin + 7ms), 1ms);
  EXPECT_EQ(k.answer_took(), 1ms);
  EXPECT_FALSE(k.asking());
  EXPECT_EQ(k.answered(last, kBegin + 8ms), std::nullopt) << "answered already";
  EXPECT_EQ(other.answered(second, kBegin + 7ms), 7ms);
}

TEST(Keepalives, AnAnswerToAnEarlierQuestionIsNone) {
  Keepalives k{false, kBegin};
  const Xid before = k.ask(kBegin, false);
  (void)k.ask(kBegin + 5ms, false);
  EXPECT_EQ(k.answered(before, kBegin + 6ms), std::nullopt);
  EXPECT_TRUE(k.asking());
  EXPECT_EQ(k.answered(Xid{k.ask(kBegin + 7ms, true).value() + 1}, kBegin + 8ms), std::nullopt)
      << "never asked";
}

}  // namespace
}  // namespace weft::wdp
