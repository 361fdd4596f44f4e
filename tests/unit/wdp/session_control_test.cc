// CTL of a session that stands: spec/wdp 5.

#include "wdp/session_control.h"

#include "tests/unit/wdp/uc_receive_fixture.h"

namespace weft::wdp {
namespace {

using wire::CtlType;
using wire::WdpCtl;
using work::StreamEnd;

struct SessionControlTest : UcReceiveTest {
  void hear(const WdpCtl& c) { session->received(c, now); }
  WdpCtl one(CtlType type) {
    auto all = said();
    EXPECT_EQ(all.size(), 1U);
    if (all.empty()) return {};
    EXPECT_EQ(all[0].type, type);
    return all[0];
  }
  // Runs to each deadline until something is said or `limit` is over.
  std::vector<WdpCtl> wait(Duration limit) {
    const Time end = now + limit;
    for (;;) {
      auto all = said();
      if (!all.empty() || session->deadline() > end) return all;
      now = std::max(now, session->deadline());
      session->tick(now);
    }
  }
};

// "Keepalive: after 10 s without receiving; 5 tries 1 s apart; then DISCONNECTED."
TEST_F(SessionControlTest, SilenceIsAskedAboutFiveTimesAndThenIsTheEnd) {
  const Time start = now;
  std::vector<int64_t> times;
  while (!host->host.end) {
    for (const WdpCtl& c : wait(20s)) {
      EXPECT_EQ(c.type, CtlType::ka);
      EXPECT_EQ(c.token, SessionToken{7});
      times.push_back((now - start).count() / 1'000'000'000);
    }
  }
  EXPECT_EQ(times, (std::vector<int64_t>{10, 11, 12, 13, 14}));
  EXPECT_EQ(now - start, 15s);
  EXPECT_EQ(host->host.end->kind, StreamEnd::Kind::lost);
  EXPECT_TRUE(session->gone());
}

TEST_F(SessionControlTest, KnowsSinceWhenNothingIsAnswered) {
  EXPECT_TRUE(session->unanswered_since().is_never());
  ASSERT_EQ(wait(20s).size(), 1U);
  const Time asked = now;
  EXPECT_EQ(session->unanswered_since(), asked);
  const WdpCtl again = wait(20s).at(0);
  EXPECT_EQ(session->unanswered_since(), asked);
  hear({.type = CtlType::kaa, .xid = again.xid});
  EXPECT_TRUE(session->unanswered_since().is_never());
  ASSERT_EQ(wait(20s).size(), 1U);
  EXPECT_EQ(session->unanswered_since(), now);
  later(1ms);
  give(cut(write(1, 10, 0)));  // whatever comes is an answer
  EXPECT_TRUE(session->unanswered_since().is_never());
}

// spec/wdp 5.1
TEST_F(SessionControlTest, ThePeerIsLostWhoseKernelSaysThatNobodyHasItsPort) {
  session->port_closed();
  EXPECT_FALSE(host->host.end) << "nobody has asked";
  const WdpCtl asked = wait(20s).at(0);
  hear({.type = CtlType::kaa, .xid = asked.xid});
  session->port_closed();
  EXPECT_FALSE(host->host.end) << "it has answered";
  ASSERT_EQ(wait(20s).size(), 1U);
  session->port_closed();
  ASSERT_TRUE(host->host.end);
  EXPECT_EQ(host->host.end->kind, StreamEnd::Kind::lost);
  EXPECT_TRUE(session->gone());
  EXPECT_TRUE(wait(20s).empty());
}

TEST_F(SessionControlTest, WhateverComesPutsItOff) {
  later(9s);
  give(cut(write(1, 10, 0)));
  const Time heard = now;
  const auto c = wait(30s);
  ASSERT_EQ(c.size(), 1U);
  EXPECT_EQ(now - heard, 10s);
  hear({.type = CtlType::kaa, .xid = c[0].xid});
  EXPECT_EQ(session->rtt().smoothed(), Duration{1});
  const Time answered = now;
  EXPECT_EQ(wait(30s).size(), 1U);
  EXPECT_EQ(now - answered, 10s);
}

TEST_F(SessionControlTest, AnAnswerGivesTheRoundTripTime) {
  const WdpCtl ka = wait(20s).at(0);
  now = now + 30ms;
  hear({.type = CtlType::kaa, .xid = Xid{ka.xid.value() + 1}});
  EXPECT_FALSE(session->rtt().known());
  hear({.type = CtlType::kaa, .xid = ka.xid});
  EXPECT_EQ(session->rtt().smoothed(), 30ms);
}

// A peer some milliseconds away answers the first of several KAs when the later ones have left. It
// need not wait for an answer to the last.
TEST_F(SessionControlTest, AnAnswerToAnEarlierKeepaliveIsAnAnswer) {
  const WdpCtl first = wait(20s).at(0);
  (void)wait(1s).at(0);
  now = now + 5ms;
  hear({.type = CtlType::kaa, .xid = Xid{first.xid.value() - 1}});
  EXPECT_FALSE(session->rtt().known());
  hear({.type = CtlType::kaa, .xid = first.xid});
  EXPECT_EQ(session->rtt().smoothed(), 1005ms);
}

TEST_F(SessionControlTest, AKeepaliveIsAnsweredWithWhatCame) {
  give(cut(write(1, 250, 0)));
  const auto again = cut(write(2, 10, 0));
  give(again);
  give(again);
  hear({.type = CtlType::ka, .xid = Xid{1234}, .highest_psn = Psn{psn + 4}});
  const WdpCtl kaa = one(CtlType::kaa);
  EXPECT_EQ(kaa.xid, Xid{1234});
  EXPECT_EQ(kaa.highest_psn, Psn{psn - 1});
  EXPECT_EQ(kaa.received, 5U);
  EXPECT_EQ(kaa.duplicates, 1U);
  EXPECT_EQ(session->lost(), 5U);
}

TEST_F(SessionControlTest, AProbeIsAnsweredWithItsSize) {
  hear({.type = CtlType::probe, .length = 1452, .xid = Xid{9}});
  const WdpCtl c = one(CtlType::probea);
  EXPECT_EQ(c.xid, Xid{9});
  EXPECT_EQ(c.max_payload, 1452);
  EXPECT_EQ(c.size(), WdpCtl::kSize);
}

TEST_F(SessionControlTest, ThePathIsProbedWhereThatIsWanted) {
  configure({.path = {.to = {.address = Gid::from_ipv4(0x0a000002)}},
             .max_payload = 8972,
             .probes_path = true});
  std::vector<size_t> sizes;
  for (int i = 0; i < 20 && session->parameters().max_payload > 1472; ++i) {
    for (const WdpCtl& c : wait(1s)) {
      ASSERT_EQ(c.type, CtlType::probe);
      sizes.push_back(c.size());
      if (c.length <= 1472) hear({.type = CtlType::probea, .xid = c.xid, .max_payload = c.length});
    }
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{8972, 8972, 64, 8972, 64, 8972, 64, 4324, 64, 4324, 64,
                                        4324, 64, 1472, 64}));
  EXPECT_EQ(session->parameters().max_payload, 1472U);
  EXPECT_EQ(session->parameters().stride(), 1424);
  EXPECT_EQ(session->counters().paths_narrowed, 2U);
}

// --- ending

TEST_F(SessionControlTest, AnsweredDreqEndsTheSession) {
  session->close(now);
  const WdpCtl dreq = one(CtlType::dreq);
  EXPECT_EQ(dreq.highest_psn, Psn{static_cast<uint32_t>(-1)});
  EXPECT_FALSE(host->host.end);
  hear({.type = CtlType::drep});
  ASSERT_TRUE(host->host.end);
  EXPECT_EQ(host->host.end->kind, StreamEnd::Kind::closed);
  // The token rests for 2 s.
  EXPECT_FALSE(session->gone());
  later(2s);
  EXPECT_TRUE(session->gone());
}

// "DREQ: 3 tries 100 ms apart, then gone."
TEST_F(SessionControlTest, UnansweredDreqIsSaidThreeTimes) {
  const Time start = now;
  session->close(now);
  std::vector<int64_t> times;
  while (!host->host.end) {
    for (const WdpCtl& c : wait(1s)) {
      EXPECT_EQ(c.type, CtlType::dreq);
      times.push_back((now - start).count() / 1'000'000);
    }
  }
  EXPECT_EQ(times, (std::vector<int64_t>{0, 100, 200}));
  EXPECT_EQ(now - start, 300ms);
  EXPECT_EQ(host->host.end->kind, StreamEnd::Kind::closed);
}

TEST_F(SessionControlTest, APeersDreqIsAnsweredAsOftenAsItComes) {
  give(cut(write(1, 10, 0)));
  hear({.type = CtlType::dreq, .highest_psn = Psn{kFirstPsn + 2}});
  (void)one(CtlType::drep);
  // Again while it waits for the two that are missing, and again after that.
  hear({.type = CtlType::dreq, .highest_psn = Psn{kFirstPsn + 2}});
  (void)one(CtlType::drep);
  EXPECT_FALSE(host->host.end);
  later(kGoodbyeHold);
  ASSERT_TRUE(host->host.end);
  EXPECT_EQ(host->host.end->kind, StreamEnd::Kind::peer_closed);
  EXPECT_EQ(session->lost(), 2U);
  hear({.type = CtlType::dreq, .highest_psn = Psn{kFirstPsn + 2}});
  (void)one(CtlType::drep);
  // Its data mean nothing any more.
  target = before;
  give(cut(write(2, 10, 0)));
  EXPECT_EQ(target, before);
  later(2s);
  EXPECT_TRUE(session->gone());
  hear({.type = CtlType::dreq});
  EXPECT_TRUE(said().empty());
}

TEST_F(SessionControlTest, ADreqBehindAllDataEndsItAtOnce) {
  give(cut(write(1, 250, 0)));
  hear({.type = CtlType::dreq, .highest_psn = Psn{psn - 1}});
  ASSERT_TRUE(host->host.end);
  EXPECT_EQ(host->host.end->kind, StreamEnd::Kind::peer_closed);
}

// --- a DREQ that overtakes data

TEST_F(SessionControlTest, WhatAGoodbyeHasOvertakenIsStillTaken) {
  post_receive(300);
  post_receive(300);
  const auto first = cut(send(1, 250));
  const auto second = cut(send(2, 10));
  give(first[0]);
  hear({.type = CtlType::dreq, .highest_psn = Psn{psn - 1}});
  (void)one(CtlType::drep);
  later(kHoldFor / 4);
  give(second);
  later(kHoldFor / 4);
  give(first[2]);
  EXPECT_FALSE(host->host.end);
  give(first[1]);
  EXPECT_EQ(delivered(), (std::vector<uint32_t>{1, 2}));
  ASSERT_TRUE(host->host.end);
  EXPECT_EQ(host->host.end->kind, StreamEnd::Kind::peer_closed);
  EXPECT_EQ(session->lost(), 0U);
  EXPECT_TRUE(said().empty());
}

TEST_F(SessionControlTest, NothingCameBeforeTheGoodbye) {
  post_receive(300);
  const auto all = cut(send(1, 250));
  hear({.type = CtlType::dreq, .highest_psn = Psn{psn - 1}});
  EXPECT_FALSE(host->host.end);
  give(all);
  EXPECT_EQ(delivered(), std::vector<uint32_t>{1});
  EXPECT_TRUE(host->host.end);
}

// What is lost does not come, and what stands behind it is not lost for that.
TEST_F(SessionControlTest, AGoodbyeWaitsForALimitedTime) {
  post_receive(300);
  (void)cut(send(1, 10));
  give(cut(send(2, 10)));
  const Time start = now;
  hear({.type = CtlType::dreq, .highest_psn = Psn{psn}});
  while (!host->host.end) {
    for (const WdpCtl& c : wait(1s)) EXPECT_EQ(c.type, CtlType::drep);
  }
  EXPECT_EQ(now - start, kGoodbyeHold);
  EXPECT_EQ(delivered(), std::vector<uint32_t>{2});
  EXPECT_EQ(session->lost(), 2U);
  later(kTimeWait);
  EXPECT_TRUE(session->gone());
}

// A PSN that nobody can have reached is none to wait for.
TEST_F(SessionControlTest, AGoodbyeFromFarAwayIsNotWaitedFor) {
  give(cut(write(1, 10, 0)));
  hear({.type = CtlType::dreq, .highest_psn = Psn{psn + kMostPsnJump + 1}});
  EXPECT_TRUE(host->host.end);
}

TEST_F(SessionControlTest, WhoHasLeftIsToldNothing) {
  hear({.type = CtlType::dreq, .highest_psn = Psn{psn}});
  (void)one(CtlType::drep);
  Buffer data = pattern_bytes(10, 1);
  host->host.post({.wr_id = 5, .operation = work::Operation::send, .signaled = true},
                  {test::segment(host->host, data)});
  hear({.type = CtlType::ka, .xid = Xid{1}});
  hear({.type = CtlType::probe, .length = 500});
  give(cut([&] {
    Message m = write(1, 10, 0);
    m.stag = Stag{0xdead};
    return m;
  }()));
  EXPECT_FALSE(session->ready(now));
  ASSERT_TRUE(host->host.end);
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.sent[0].status, work::Status::flushed);
}

// It knows.
TEST_F(SessionControlTest, WhoHasLeftIsNotToldGoodbye) {
  hear({.type = CtlType::dreq, .highest_psn = Psn{psn}});
  (void)one(CtlType::drep);
  session->abort(0, now);
  EXPECT_TRUE(said().empty());
  EXPECT_TRUE(session->ended());
  later(kTimeWait);
  EXPECT_TRUE(session->gone());
}

TEST_F(SessionControlTest, BothMayEndItAtOnce) {
  session->close(now);
  (void)one(CtlType::dreq);
  hear({.type = CtlType::dreq});
  (void)one(CtlType::drep);
  ASSERT_TRUE(host->host.end);
  EXPECT_EQ(host->host.end->kind, StreamEnd::Kind::closed);
}

TEST_F(SessionControlTest, AbortedItSaysSoAndIsSilentThen) {
  session->abort(5, now);
  EXPECT_EQ(one(CtlType::dreq).reason, 5U);
  EXPECT_FALSE(host->host.end);  // its owner knows
  give(cut(write(1, 10, 0)));
  EXPECT_EQ(target, before);
}

// --- ERR

TEST_F(SessionControlTest, AnErrIsAnEventAndNoMore) {
  Buffer header = cut(write(1, 10, 0))[0];
  header.resize(WdpData::kSize);
  hear({.type = CtlType::err,
        .reason = ErrorBits<wire::TermError>::pack(wire::term::kTaggedBounds),
        .offending = header});
  EXPECT_EQ(host->remote_errors, std::vector<wire::TermError>{wire::term::kTaggedBounds});
  EXPECT_FALSE(host->host.end);
  EXPECT_EQ(counters().errors_received, 1U);
  const Message m = write(2, 10, 0);
  give(cut(m));
  EXPECT_TRUE(placed(m));
}

// --- static sessions

// "expects no keepalive and answers nothing"
TEST_F(SessionControlTest, AStaticSessionSaysNothing) {
  configure({.probes_path = true, .is_static = true});
  EXPECT_TRUE(session->deadline().is_never());
  Message m = write(1, 10, 0);
  m.stag = Stag{0xdead};
  psn = 0x1234'5678;
  give(cut(m));
  hear({.type = CtlType::ka});
  hear({.type = CtlType::probe, .length = 500});
  hear({.type = CtlType::dreq});
  later(100s);
  EXPECT_TRUE(said().empty());
  EXPECT_FALSE(host->host.end);
  m = write(2, 10, 0);
  give(cut(m));
  EXPECT_TRUE(placed(m));
  session->close(now);
  EXPECT_TRUE(said().empty());
  EXPECT_TRUE(host->host.end && session->gone());
}

}  // namespace
}  // namespace weft::wdp
