#include "wdp/rd_presence.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

using Due = PeerWatch::Due;
constexpr Time kStart = Time::from_ns(1'000'000'000);

TEST(RdPresence, AsksWhoMayLackTheRtu) {
  RdPresence p;
  p.opens(true, kStart);
  Time now = kStart;
  int questions = 0;
  for (; !p.deadline().is_never(); ++questions) {
    EXPECT_EQ(p.deadline(), now + kAskForPeer);
    EXPECT_FALSE(p.tick_first(kStart, now));
    now = p.deadline();
    EXPECT_TRUE(p.tick_first(kStart, now));
  }
  EXPECT_EQ(questions, 26) << "until the peer gives up";
}

TEST(RdPresence, NotOnceItWasHeard) {
  RdPresence p;
  p.opens(true, kStart);
  p.heard(kStart + 10ms);
  EXPECT_TRUE(p.deadline().is_never());
  EXPECT_FALSE(p.tick_first(kStart, kStart + 10s));
}

TEST(RdPresence, NorWhereThePeerHasCalled) {
  RdPresence p;
  p.opens(false, kStart);
  EXPECT_TRUE(p.deadline().is_never());
}

TEST(RdPresence, WithoutConnectionsItWatchesNobody) {
  RdPresence p;
  p.opens(false, kStart);
  p.exchanged();
  EXPECT_EQ(p.tick(kStart + 60s), Due::nothing);
  p.enter();
  p.enter();
  p.leave();
  EXPECT_TRUE(p.is_needed());
  EXPECT_EQ(p.deadline(), kStart + kFirstRest);
  EXPECT_EQ(p.tick(kStart + kFirstRest), Due::question);
  p.leave();
  EXPECT_FALSE(p.is_needed());
  EXPECT_TRUE(p.deadline().is_never());
}

TEST(RdPresence, AsksUntilTheQuestionIsAnswered) {
  RdPresence p;
  p.opens(false, kStart);
  p.enter();
  EXPECT_FALSE(p.due());
  const uint32_t wanted = p.want();
  EXPECT_TRUE(p.due());
  p.said(kStart);
  EXPECT_EQ(p.next(), wanted);
  EXPECT_FALSE(p.due());
  (void)p.tick(kStart + kFirstRest);
  EXPECT_TRUE(p.due()) << "again";
  p.said(kStart + kFirstRest);
  EXPECT_EQ(p.next(), wanted + 1);
  EXPECT_FALSE(p.answered(wanted + 2)) << "nobody has asked that";
  EXPECT_FALSE(p.has_answered(wanted));
  EXPECT_TRUE(p.answered(wanted + 1));
  EXPECT_TRUE(p.has_answered(wanted)) << "a later one";
}

TEST(RdPresence, AnswersMakeTheNextPauseLonger) {
  RdPresence p;
  p.opens(false, kStart);
  p.enter();
  p.exchanged();
  (void)p.next();
  EXPECT_TRUE(p.answered(1));
  EXPECT_EQ(p.deadline(), kStart + kRestGrowth * kFirstRest);
}

TEST(RdPresence, AsksBesidesDataThatIsNotAnswered) {
  RdPresence p;
  EXPECT_FALSE(p.follows(kProbesToAsk - 1));
  EXPECT_TRUE(p.follows(kProbesToAsk));
  EXPECT_FALSE(p.follows(kProbesToAsk)) << "once for each";
  EXPECT_TRUE(p.follows(kProbesToAsk + 1));
}

TEST(RdPresence, SilenceIsMoreThanOneQuestion) {
  RdPresence p;
  p.opens(false, kStart);
  p.enter();
  EXPECT_EQ(p.silence(kQuestionsToInquire - 1), 0U);
  EXPECT_EQ(p.silence(kQuestionsToInquire), kQuestionsToInquire);
  for (uint32_t i = 0; i < 3; ++i) (void)p.tick(p.deadline());
  EXPECT_EQ(p.silence(0), 3U);
  p.heard(kStart + 20s);
  EXPECT_EQ(p.silence(0), 0U);
}

}  // namespace
}  // namespace weft::wdp
