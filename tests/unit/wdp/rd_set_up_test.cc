// How two sockets come to one channel (spec/wdp-rd 2.2) while strangers send REQs in a peer's name,
// and how a channel ends whose peer has begun anew (2.4).

#include <gtest/gtest.h>

#include "tests/unit/wdp/rd_channel_fixture.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::RdNode;
using wire::CtlType;
using wire::WdpCtl;
using wire::WdpDrop;
using work::Status;

struct RdSetUp : RdChannelTest {
  // What anybody may send who writes a host's address in it.
  static Buffer request(uint32_t token, uint32_t xid) {
    const WdpCtl c{.type = CtlType::req,
                   .source_token = SessionToken{token},
                   .source = make_qpn(RdNode::kPort, 0),
                   .destination = make_qpn(RdNode::kPort, 0),
                   .xid = Xid{xid},
                   .service = wire::CtlService::rd_channel,
                   .ib_style = true,
                   .max_payload = 1472,
                   .first_psn = Psn{token * 3}};
    Buffer d(c.size());
    c.encode(d.data());
    return d;
  }
  // One channel, and both ends know each other's token.
  void expect_one_channel() {
    ASSERT_EQ(a.links.size(), 1U);
    ASSERT_EQ(b.links.size(), 1U);
    EXPECT_EQ(of_a().state(), RdChannel::State::open);
    EXPECT_EQ(of_b().state(), RdChannel::State::open);
    EXPECT_EQ(of_a().peer().token, of_b().token());
    EXPECT_EQ(of_b().peer().token, of_a().token());
  }
  // Datagrams between two hosts until both are silent.
  void meet(RdNode& x, RdNode& y) {
    for (bool any = true; any;) {
      any = false;
      for (const auto& d : x.said(now)) any = true, y.hear(d.bytes, x.address, now);
      for (const auto& d : y.said(now)) any = true, x.hear(d.bytes, y.address, now);
    }
  }
  void meet_for(RdNode& x, RdNode& y, Duration d) {
    meet(x, y);
    for (const Time end = now + d; now < end;) {
      const Duration least = std::chrono::nanoseconds{1};
      now = std::min(end, std::max(std::min(x.deadline(), y.deadline()), now + least));
      x.tick(now);
      y.tick(now);
      meet(x, y);
    }
  }
};

TEST_F(RdSetUp, AStrangersRequestHoldsUpNoMessage) {
  b.hear(request(77, 5), a.address, now);
  talk();  // A drops the REP: it has not called
  ASSERT_EQ(b.links.size(), 1U);
  p.post_receives(1);
  q.send(kA, 3, text);
  talk();
  later(1ms);
  EXPECT_EQ(p.received.size(), 1U);
  ASSERT_EQ(q.host.sent.size(), 1U);
  EXPECT_EQ(q.host.sent[0].status, Status::success);
  expect_one_channel();
}

// The XID of a stranger is lower than any other, so that B would drop its own REQ for it.
TEST_F(RdSetUp, NorDoesOneThatCrossesACall) {
  p.post_receives(1);
  q.send(kA, 3, text);
  const auto called = b.said(now);
  ASSERT_TRUE(is_ctl(called.at(0).bytes, CtlType::req));
  b.hear(request(77, 0), a.address, now);
  a.hear(called[0].bytes, b.address, now);
  talk();
  later(1ms);
  EXPECT_EQ(p.received.size(), 1U);
  expect_one_channel();
}

// Nor many of them, whenever they come; the peer calls, too.
TEST_F(RdSetUp, StrangersAndThePeerCall) {
  p.post_receives(1);
  q.post_receives(1);
  uint32_t strangers = 0;
  const auto noise = [&](bool, const Buffer&) {
    ++strangers;
    b.hear(request(1000 + strangers, strangers % 2), a.address, now);
    a.hear(request(2000 + strangers, strangers % 2), b.address, now);
    return true;
  };
  b.hear(request(77, 0), a.address, now);
  a.hear(request(78, 0), b.address, now);
  q.send(kA, 3, text);
  p.send(kB, 5, text);
  for (int i = 0; i < 20; ++i) {
    for (const auto& d : a.said(now)) noise(true, d.bytes), b.hear(d.bytes, a.address, now);
    for (const auto& d : b.said(now)) noise(false, d.bytes), a.hear(d.bytes, b.address, now);
    now = now + 10ms;
    a.tick(now);
    b.tick(now);
  }
  EXPECT_EQ(p.received.size(), 1U);
  EXPECT_EQ(q.received.size(), 1U);
  expect_one_channel();
}

// Both have answered a stranger and call. One answers the other's REQ, and says so again with its
// own: no further REQ gets through, nor did the first answer.
TEST_F(RdSetUp, AnAnswerIsRepeatedWithTheCall) {
  p.post_receives(1);
  q.post_receives(1);
  b.hear(request(77, 0), a.address, now);
  a.hear(request(78, 0), b.address, now);
  p.send(kB, 5, text);
  q.send(kA, 3, text);
  bool answered = false;
  const auto watch = [&](bool, const Buffer& d) {
    if (answered) return !is_ctl(d, CtlType::req);
    if (!is_ctl(d, CtlType::rep)) return true;
    const SessionToken to = WdpCtl::parse(d)->token;
    answered = to != SessionToken{77} && to != SessionToken{78};
    return !answered;
  };
  talk(watch);
  later(1s, watch);
  EXPECT_TRUE(answered);
  EXPECT_EQ(p.received.size(), 1U);
  EXPECT_EQ(q.received.size(), 1U);
  expect_one_channel();
}

// Both have something to say: at the same time, or B once it has answered A's REQ. Any of the first
// control messages are lost.
TEST(RdSetUpCrossing, ComesToOneChannelWhateverIsLost) {
  struct Run final : RdSetUp {
    void TestBody() override {}
  };
  constexpr unsigned kFirst = 8;
  for (unsigned lost = 0; lost < 1U << kFirst; ++lost) {
    for (const bool at_once : {true, false}) {
      Run t;
      unsigned n = 0;
      const auto watch = [&](bool, const Buffer& d) {
        if (Run::class_of(d) != wire::WdpClass::ctl || n >= kFirst) return true;
        return (lost >> n++ & 1) == 0;
      };
      t.p.post_receives(1);
      t.q.post_receives(1);
      t.p.send(Run::kB, 5, t.text);
      if (at_once) t.q.send(Run::kA, 3, t.text);
      if (!at_once) {
        for (const auto& d : t.a.said(t.now)) {
          if (watch(true, d.bytes)) t.b.hear(d.bytes, t.a.address, t.now);
        }
        t.q.send(Run::kA, 3, t.text);
      }
      t.talk(watch);
      t.later(5s, watch);
      ASSERT_EQ(t.p.received.size(), 1U) << lost << at_once;
      ASSERT_EQ(t.q.received.size(), 1U) << lost << at_once;
      t.expect_one_channel();
      ASSERT_FALSE(HasFailure()) << lost << at_once;
    }
  }
}

// A host that has no channels says so, although somebody has asked for one in its name.
TEST_F(RdSetUp, APeerWithoutChannelsIsFound) {
  RdNode c{3, 9, now, false};
  RdNode::Pair& r = c.add_pair(5);
  r.post_receives(1);
  a.hear(request(77, 5), c.address, now);
  p.send(3, 5, text);
  meet(a, c);
  EXPECT_EQ(r.received.size(), 1U);
  EXPECT_EQ(p.queue->counters().messages_plain, 1U);
}

// spec/wdp-rd 2.3: an answer that is given up says nothing against channels.
TEST_F(RdSetUp, APeerThatGivesItsAnswerUpIsCalledAgain) {
  q.post_receives(1);
  p.send(kB, 5, text);
  for (const auto& d : a.said(now)) b.hear(d.bytes, a.address, now);
  ASSERT_EQ(b.links.size(), 1U);
  EXPECT_EQ(b.said(now).size(), 1U);  // REP, which is lost
  of_b().abort();
  talk();
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.received[0].bytes, text);
  EXPECT_EQ(p.queue->counters().messages_plain, 0U);
  expect_one_channel();
  later(kAckDelay);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.host.sent[0].status, Status::success);
}

// spec/wdp-rd 2.4: a process on the port of one that was killed tells its peers.
TEST_F(RdSetUp, APeerThatDoesNotKnowTheChannelEndsIt) {
  stand();
  RdNode again{kB, 99, now};
  again.add_pair(5).post_receives(2);
  p.send(kB, 5, text);
  meet_for(a, again, 2s);
  ASSERT_EQ(p.host.sent.size(), 1U) << "and not after 15 s";
  EXPECT_EQ(p.host.sent[0].status, Status::retry_exceeded);
  EXPECT_TRUE(a.links.empty());
  p.send(kB, 5, text);
  meet_for(a, again, 10ms);
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.host.sent[1].status, Status::success);
}

TEST_F(RdSetUp, OneWhoIsAskedSaysSoAtOnce) {
  stand();
  RdNode again{kB, 99, now};
  (void)of_a().ask_peer();
  meet(a, again);
  EXPECT_TRUE(a.links.empty());
  EXPECT_EQ(again.socket.drops().of(WdpDrop::unknown_token), 1U);
}

// Who has not seen the channel's datagrams does not know both tokens.
TEST_F(RdSetUp, AStrangersWordEndsNothing) {
  stand();
  const WdpCtl c{.type = CtlType::drep,
                 .token = of_a().token(),
                 .source_token = SessionToken{of_b().token().value() + 1},
                 .service = wire::CtlService::rd_channel};
  Buffer d(c.size());
  c.encode(d.data());
  a.hear(d, b.address, now);
  EXPECT_EQ(of_a().state(), RdChannel::State::open);
}

// The DREP that the exit waits for is lost, and its channel has gone at the peer.
TEST_F(RdSetUp, AGoodbyeIsAnsweredByWhoHasForgottenTheChannel) {
  stand();
  of_b().close(now);
  int goodbyes = 0;
  bool lost = true;
  const auto watch = [&](bool from_a, const Buffer& d) {
    if (!from_a && is_ctl(d, CtlType::dreq)) ++goodbyes;
    return !(from_a && is_ctl(d, CtlType::drep) && std::exchange(lost, false));
  };
  talk(watch);
  EXPECT_TRUE(a.links.empty());
  EXPECT_EQ(b.links.size(), 1U);
  later(1s, watch);
  EXPECT_TRUE(b.links.empty());
  EXPECT_EQ(goodbyes, 2);
}

// spec/wdp-rd 2.4: a question says that somebody needs the channel.
TEST_F(RdSetUp, AChannelThatIsAskedForDoesNotEndForWantOfMessages) {
  stand();
  later(119s);
  const uint32_t question = of_a().ask_peer();
  talk();
  EXPECT_TRUE(of_a().has_answered(question));
  later(60s);
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(b.links.size(), 1U);
}

TEST_F(RdSetUp, WhoSaysGoodbyeDoesNotSayThatItIsThere) {
  stand();
  const uint32_t question = of_a().ask_peer();
  const auto asked = a.said(now);
  ASSERT_TRUE(is_ctl(asked.at(0).bytes, CtlType::ka));
  of_b().close(now);
  b.hear(asked[0].bytes, a.address, now);
  for (const auto& d : b.said(now)) EXPECT_FALSE(is_ctl(d.bytes, CtlType::kaa));
  EXPECT_FALSE(of_a().has_answered(question));
}

}  // namespace
}  // namespace weft::wdp
