#include "stream/continuity.h"

#include <gtest/gtest.h>

namespace weft::stream {
namespace {

using Answer = Continuity::Answer;

constexpr uint64_t kRing = 64;

Header header_of(uint64_t number, const Origin& origin = {}) {
  return {.verdict = Verdict::good, .number = number, .origin = origin};
}

std::vector<uint64_t> numbers(const Continuity& c) {
  std::vector<uint64_t> all;
  for (const Continuity::Taken& t : c.taken()) all.push_back(t.number);
  return all;
}

TEST(Continuity, WhatLiesWithinTheRingNeedsNoWitness) {
  Continuity c{kRing};
  c.begin();
  for (const uint64_t number : {1000ULL, 1063ULL, 936ULL}) {
    EXPECT_EQ(c.judge(header_of(number), 1000).answer, Answer::goes_on) << number;
  }
  EXPECT_EQ(c.judge(header_of(1064), 1000).answer, Answer::wait);
  EXPECT_EQ(c.judge(header_of(935), 1000).answer, Answer::wait);
}

TEST(Continuity, AStrangerIsGivenUpWhenTheStreamGoesOn) {
  Continuity c{kRing};
  c.begin();
  for (uint64_t i = 0; i + 1 < Continuity::kWitnesses; ++i) {
    ASSERT_EQ(c.judge(header_of(50'000 + i), 1000).answer, Answer::wait);
  }
  EXPECT_EQ(c.judge(header_of(1000), 1000).answer, Answer::goes_on);
  EXPECT_EQ(c.take_given_up(), Continuity::kWitnesses - 1);
  EXPECT_EQ(c.take_given_up(), 0U);
  // The next ones have to agree anew.
  EXPECT_EQ(c.judge(header_of(50'010), 1001).answer, Answer::wait);
}

TEST(Continuity, SeveralInARowAreBelievedAndNoneIsLost) {
  Continuity c{kRing};
  c.begin();
  std::vector<uint64_t> sent;
  Continuity::Judgement judgement;
  for (uint64_t i = 0; i < Continuity::kWitnesses; ++i) {
    sent.push_back(5 + (i ^ 1));  // overtaking each other
    judgement = c.judge(header_of(sent.back()), 100'000);
    ASSERT_EQ(judgement.answer, i + 1 < Continuity::kWitnesses ? Answer::wait : Answer::believed);
  }
  EXPECT_TRUE(judgement.anew);
  EXPECT_EQ(judgement.first, 5U);
  EXPECT_EQ(numbers(c), sent);
  EXPECT_EQ(c.take_given_up(), 0U);
}

TEST(Continuity, AnOutageGoesOnAndAnotherClockBeginsAnew) {
  for (const uint64_t ahead : {kRing, Continuity::kLongestOutage, Continuity::kLongestOutage + 1}) {
    Continuity c{kRing};
    c.begin();
    Continuity::Judgement judgement;
    for (uint64_t i = 0; i < Continuity::kWitnesses; ++i) {
      judgement = c.judge(header_of(1000 + ahead + i), 1000);
    }
    ASSERT_EQ(judgement.answer, Answer::believed) << ahead;
    EXPECT_EQ(judgement.anew, ahead > Continuity::kLongestOutage) << ahead;
  }
}

// Two senders that know nothing of each other: the one that comes more often has it.
TEST(Continuity, AtTheBeginningMostWitnessesDecide) {
  Continuity c{kRing};
  std::vector<uint64_t> good;
  for (uint64_t i = 0;; ++i) {
    if (i % 3 == 2) {
      EXPECT_EQ(c.judge(header_of(i * 1'000'000'007), {}).answer, Answer::wait);
      continue;
    }
    good.push_back(40 + i);
    if (c.judge(header_of(40 + i), {}).answer == Answer::believed) break;
    ASSERT_LT(i, 100U);
  }
  EXPECT_EQ(good.size(), Continuity::kWitnesses);
  EXPECT_EQ(numbers(c), good);
  EXPECT_EQ(c.take_given_up(), 3U);
}

TEST(Continuity, NumbersThatNeverAgreeDoNotPileUp) {
  Continuity c{kRing};
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto judgement = c.judge(header_of(i * 1'000'003), {});
    ASSERT_EQ(judgement.answer, Answer::wait);
    ASSERT_LT(judgement.held, Continuity::kMostHeld);
  }
  EXPECT_EQ(c.take_given_up(), 1000 - Continuity::kMostHeld);
}

TEST(Continuity, TheFirstOriginHoldsUntilTheStreamEnds) {
  const Origin own{.station = 1, .unit = 2, .clock = 200};
  Continuity c{kRing};
  c.begin();
  ASSERT_EQ(c.judge(header_of(10, own), 10).answer, Answer::goes_on);
  for (const Origin& other : {Origin{2, 2, 200}, Origin{1, 3, 200}, Origin{1, 2, 160}, Origin{}}) {
    EXPECT_EQ(c.judge(header_of(11, other), 11).answer, Answer::foreign);
  }
  EXPECT_EQ(c.judge(header_of(11, own), 11).answer, Answer::goes_on);
  c.end();
  c.begin();
  EXPECT_EQ(c.judge(header_of(12, Origin{2, 2, 200}), 12).answer, Answer::goes_on);
}

TEST(Continuity, AShortStreamIsBelievedWhenItIsOver) {
  Continuity c{kRing};
  (void)c.judge(header_of(7), {});
  (void)c.judge(header_of(900'000), {});
  (void)c.judge(header_of(6), {});
  const auto judgement = c.settle({}, {});
  ASSERT_TRUE(judgement);
  EXPECT_EQ(judgement->first, 6U);
  EXPECT_EQ(numbers(c), (std::vector<uint64_t>{7, 6}));
  EXPECT_EQ(c.take_given_up(), 1U);
  EXPECT_FALSE(c.settle({}, {}));
}

TEST(Continuity, WhatASenderSaysThatItSentIsBelieved) {
  Continuity c{kRing};
  c.begin();
  for (const uint64_t number : {500ULL, 502ULL, 90'000ULL}) (void)c.judge(header_of(number), 100);
  ASSERT_TRUE(c.settle(100, 503));
  EXPECT_EQ(numbers(c), (std::vector<uint64_t>{500, 502}));
  EXPECT_EQ(c.take_given_up(), 1U);
}

TEST(Continuity, WithoutSuchAWordAFewStrangersAreNone) {
  Continuity c{kRing};
  c.begin();
  (void)c.judge(header_of(500), 100);
  EXPECT_FALSE(c.settle(100, {}));
  EXPECT_EQ(c.take_given_up(), 1U);
}

}  // namespace
}  // namespace weft::stream
