// Channels of reliable datagrams (spec/wdp-rd), two hosts against each other without a network.

#include "wdp/rd_channel.h"

#include <gtest/gtest.h>

#include "tests/unit/wdp/rd_channel_fixture.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;
using test::RdNode;
using wire::CtlType;
using wire::WdpClass;
using wire::WdpCtl;
using wire::WdpDrop;
using work::Status;

// spec/wdp-rd 2.2: REQ, REP, and the data go with the RTU.
TEST_F(RdChannelTest, TheFirstMessageTakesOneMoreRoundTrip) {
  std::vector<std::string> said;
  q.post_receives(1);
  work::SendWqe w;
  w.operation = work::Operation::send_immediate;
  w.immediate = 0xcafe;
  w.solicited = true;
  p.send(kB, 5, text, w);
  talk([&](bool from_a, const Buffer& d) {
    said.push_back((from_a ? "a " : "b ") + std::string(to_string(class_of(d))));
    return true;
  });
  EXPECT_EQ(said, (std::vector<std::string>{"a CTL", "b CTL", "a CTL", "a RD"}))
      << "and no timer: who is called says by itself that it has an answer";
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.received[0].bytes, text);
  EXPECT_EQ(q.received[0].source, p.number);
  EXPECT_TRUE(q.received[0].solicited);
  EXPECT_EQ(q.received[0].immediate, 0xcafeU);
  EXPECT_TRUE(p.host.sent.empty()) << "a Send is complete when it is acknowledged";
  later(kAckDelay);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.host.sent[0].status, Status::success);
}

// spec/wdp-rd 4.1: behind data an acknowledgement goes at once, in one train; alone it waits for
// 100 us; every second datagram has one.
TEST_F(RdChannelTest, WhenItIsAcknowledged) {
  stand();
  p.post_receives(8);
  q.post_receives(8);
  p.send(kB, 5, text);
  talk();
  EXPECT_TRUE(p.host.sent.empty());
  q.send(kA, 3, text);
  talk();
  EXPECT_EQ(p.host.sent.size(), 1U) << "the answer brings it";
  for (uint32_t i = 0; i < kAckEvery; ++i) {
    talk();
    EXPECT_EQ(p.host.sent.size(), 1U) << "and fewer than so many wait";
    p.send(kB, 5, text);
  }
  talk();
  EXPECT_EQ(p.host.sent.size(), 1 + kAckEvery);
}

// What it took to set it up is gone when both sides have heard of each other, and a second later so
// is the place of what was sent.
TEST_F(RdChannelTest, AtRestItHasLittleMemory) {
  stand();
  for (const RdChannel* c : {&of_a(), &of_b()}) EXPECT_EQ(c->handshake(), nullptr);
  EXPECT_TRUE(of_a().sender().may_rest());
  later(kMemoryRests);
  EXPECT_FALSE(of_a().sender().may_rest());
  q.post_receives(1);
  p.send(kB, 5, text);
  talk();
  later(1ms);
  EXPECT_EQ(q.received.size(), 1U);
  EXPECT_EQ(p.host.sent.size(), 1U);
}

// spec/wdp-rd 2.2: copies of its messages come late, and say nothing.
TEST_F(RdChannelTest, WhatCameOfTheHandshakeComesAgain) {
  q.post_receives(2);
  p.send(kB, 5, text);
  std::vector<std::pair<bool, test::Buffer>> said;
  talk([&](bool from_a, const test::Buffer& d) {
    if (class_of(d) == wire::WdpClass::ctl) said.emplace_back(from_a, d);
    return true;
  });
  later(1ms);
  ASSERT_EQ(said.size(), 3U) << "REQ, REP, RTU";
  for (const auto& [from_a, d] : said) {
    from_a ? b.hear(d, a.address, now) : a.hear(d, b.address, now);
    talk();
  }
  EXPECT_EQ(drops(a, WdpDrop::stale_handshake), 1U) << "REP";
  EXPECT_EQ(drops(b, WdpDrop::stale_handshake), 1U) << "RTU";
  p.send(kB, 5, text);
  talk();
  later(1ms);
  EXPECT_EQ(q.received.size(), 2U);
  EXPECT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(a.links.size() + b.links.size(), 2U);
}

// spec/wdp 4.6.
TEST_F(RdChannelTest, BothCall) {
  p.post_receives(1);
  q.post_receives(1);
  p.send(kB, 5, text);
  q.send(kA, 3, text);
  talk();
  later(10ms);
  EXPECT_EQ(p.received.size(), 1U);
  EXPECT_EQ(q.received.size(), 1U);
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(b.links.size(), 1U);
}

// spec/wdp-rd 2.2: all RTUs are lost, and the data that would do instead; the passive side has
// something to say and may not.
TEST_F(RdChannelTest, AllRtusAreLost) {
  p.post_receives(1);
  p.send(kB, 77, text);
  bool open = false;
  const auto watch = [&](bool from_a, const Buffer& d) {
    open |= !from_a && is_ctl(d, CtlType::rep);
    return !(from_a && open && (is_ctl(d, CtlType::rtu) || is_data(d)));
  };
  talk(watch);
  q.send(kA, 3, text);
  later(2s, watch);
  EXPECT_EQ(p.received.size(), 1U);
}

TEST_F(RdChannelTest, ASocketSendsToItself) {
  RdNode::Pair& other = a.add_pair(4);
  other.post_receives(2);
  p.send(kA, 4, text);
  p.send(kA, 4, text);
  talk();
  later(1ms);
  EXPECT_EQ(other.received.size(), 2U);
  EXPECT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(a.links.size(), 1U);
}

// spec/wdp-rd 2.3: a peer without channels says REJ 4; what waits goes as datagrams, in order, and
// so does what follows. After a minute it is asked again.
TEST_F(RdChannelTest, APeerWithoutChannels) {
  RdNode c{3, 9, now, false};
  RdNode::Pair& r = c.add_pair(5);
  r.post_receives(8);
  const auto with_c = [&] {
    for (bool any = true; any;) {
      any = false;
      for (const auto& d : a.said(now)) any = true, c.hear(d.bytes, a.address, now);
      for (const auto& d : c.said(now)) any = true, a.hear(d.bytes, c.address, now);
    }
  };
  for (uint8_t i = 0; i < 3; ++i) p.send(3, 5, Buffer(10, std::byte{i}));
  with_c();
  ASSERT_EQ(r.received.size(), 3U);
  for (uint8_t i = 0; i < 3; ++i) EXPECT_EQ(r.received[i].bytes, Buffer(10, std::byte{i}));
  EXPECT_EQ(p.host.sent.size(), 3U);
  EXPECT_EQ(p.queue->counters().messages_plain, 3U);
  EXPECT_TRUE(p.queue->idle());
  EXPECT_TRUE(a.links.empty());
  p.send(3, 5, text);
  with_c();
  EXPECT_EQ(r.received.size(), 4U);
  EXPECT_TRUE(a.links.empty()) << "nobody is asked";
  now = now + kAskAgain;
  p.send(3, 5, text);
  with_c();
  EXPECT_EQ(p.queue->counters().messages_plain, 5U);
}

// What goes to one peer by a channel and to another one as datagrams completes in the order of the
// send queue.
TEST_F(RdChannelTest, CompletionsKeepTheirOrder) {
  RdNode c{3, 9, now, false};
  c.add_pair(5).post_receives(8);
  q.post_receives(8);
  for (const uint8_t to : {kB, uint8_t{3}, kB, uint8_t{3}, kB}) p.send(to, 5, text);
  for (int i = 0; i < 20; ++i) {
    for (const auto& d : a.said(now)) (d.to == b.address ? b : c).hear(d.bytes, a.address, now);
    for (const auto& d : b.said(now)) a.hear(d.bytes, b.address, now);
    for (const auto& d : c.said(now)) a.hear(d.bytes, c.address, now);
    now = now + 100us;
    a.tick(now);
    b.tick(now);
  }
  ASSERT_EQ(p.host.sent.size(), 5U);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(p.host.sent[i].wr_id, i + 1);
  EXPECT_EQ(c.pairs.front().received.size(), 2U);
  EXPECT_EQ(q.received.size(), 3U);
}

// A request that a channel has delivered stands behind one that goes again, as a datagram.
TEST_F(RdChannelTest, ACompletionWaitsForOneThatGoesAgain) {
  stand();
  RdNode c{3, 9, now, false};
  c.add_pair(5).post_receives(1);
  q.post_receives(1);
  p.send(3, 5, text);
  const auto call = a.said(now);
  ASSERT_EQ(call.size(), 1U);
  p.send(kB, 5, text);
  talk();
  later(kAckDelay);
  EXPECT_EQ(q.received.size(), 1U);
  EXPECT_TRUE(p.host.sent.empty());
  c.hear(call[0].bytes, a.address, now);
  for (const auto& d : c.said(now)) a.hear(d.bytes, c.address, now);
  while (true) {
    const auto said = a.said(now);
    if (said.empty()) break;
    for (const auto& d : said) c.hear(d.bytes, a.address, now);
  }
  EXPECT_EQ(c.pairs.front().received.size(), 1U);
  ASSERT_EQ(p.host.sent.size(), 2U);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(p.host.sent[i].wr_id, i + 2);
}

// spec/wdp 4.2: 12.7 s. Nothing else is held up, and later messages try again.
TEST_F(RdChannelTest, NobodyAnswers) {
  b_gone = true;
  p.send(kB, 5, text);
  talk();
  later(12s);
  EXPECT_TRUE(p.host.sent.empty());
  later(1s);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.host.sent[0].status, Status::retry_exceeded);
  EXPECT_EQ(p.failures, 0) << "the queue pair goes on";
  b_gone = false;
  q.post_receives(1);
  p.send(kB, 5, text);
  talk();
  later(1ms);
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.host.sent[1].status, Status::success);
}

// A gap is told at once, and what was lost is sent again after 5/4 of a round trip (250 us at
// least), once.
TEST_F(RdChannelTest, ALostDatagramComesAgain) {
  stand();
  q.post_receives(8);
  // Too long to share a datagram.
  for (uint8_t i = 0; i < 4; ++i) p.send(kB, 5, pattern_bytes(1000, i));
  int data = 0;
  talk([&](bool, const Buffer& d) { return !(is_data(d) && ++data == 2); });
  EXPECT_EQ(q.received.size(), 1U);
  later(400us);
  ASSERT_EQ(q.received.size(), 4U);
  for (uint8_t i = 0; i < 4; ++i) EXPECT_EQ(q.received[i].bytes, pattern_bytes(1000, i));
  later(10ms);
  EXPECT_EQ(p.host.sent.size(), 4U);
  EXPECT_EQ(of_a().sender().counters().lost, 1U);
  EXPECT_EQ(of_a().sender().counters().repeated, 1U);
  EXPECT_EQ(q.received.size(), 4U);
}

// spec/wdp-rd 5.3: the last one of all is lost, so that nothing later can tell.
TEST_F(RdChannelTest, ALostTailIsAskedFor) {
  stand();
  q.post_receives(8);
  p.send(kB, 5, text);
  talk([&](bool, const Buffer& d) { return !is_data(d); });
  later(10ms);
  EXPECT_EQ(q.received.size(), 1U);
  EXPECT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(of_a().sender().counters().probes, 1U);
  EXPECT_EQ(of_a().sender().counters().lost, 0U);
}

TEST_F(RdChannelTest, ALostAcknowledgementTakesNothingTwice) {
  stand();
  q.post_receives(8);
  p.send(kB, 5, text);
  talk([&](bool, const Buffer& d) { return !is_ack(d); });
  later(500us, [&](bool, const Buffer& d) { return !is_ack(d); });
  EXPECT_TRUE(p.host.sent.empty());
  later(10ms);
  EXPECT_EQ(q.received.size(), 1U);
  EXPECT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(drops(b, WdpDrop::duplicate), 1U);
}

// spec/wdp-rd 4.3: one flow's gap does not hold up another.
TEST_F(RdChannelTest, FlowsDoNotWaitForEachOther) {
  stand();
  RdNode::Pair& other = b.add_pair(6);
  q.post_receives(8);
  other.post_receives(8);
  p.send(kB, 5, text);
  p.send(kB, 6, text);
  p.send(kB, 5, text);
  int data = 0;
  talk([&](bool, const Buffer& d) { return !(is_data(d) && ++data == 1); });
  EXPECT_EQ(other.received.size(), 1U);
  EXPECT_TRUE(q.received.empty());
  later(1ms);
  EXPECT_EQ(q.received.size(), 2U);
}

// spec/wdp-rd 4.4: without receives messages wait at the receiver, until its window is used up;
// then they wait at the sender. Nothing is lost.
TEST_F(RdChannelTest, WithoutReceivesTheyWait) {
  stand();
  constexpr size_t kMany = 3000;
  for (size_t i = 0; i < kMany; ++i) {
    Buffer m(1000);
    std::memcpy(m.data(), &i, sizeof i);
    p.send(kB, 5, m);
  }
  talk();
  later(10ms);
  EXPECT_TRUE(q.received.empty());
  EXPECT_GT(p.host.sent.size(), 500U) << "acknowledged: B has them";
  EXPECT_LT(p.host.sent.size(), 1100U) << "a MiB of them";
  EXPECT_EQ(drops(b, WdpDrop::window_exceeded), 0U);
  for (size_t got = 0; got < kMany; got += 100) {
    q.post_receives(100);
    talk();
    later(10ms);
  }
  ASSERT_EQ(q.received.size(), kMany);
  for (size_t i = 0; i < kMany; ++i) {
    size_t n = 0;
    std::memcpy(&n, q.received[i].bytes.data(), sizeof n);
    ASSERT_EQ(n, i);
  }
  EXPECT_EQ(p.host.sent.size(), kMany);
}

// The news that a window is open again is lost: the sender asks by KA.
TEST_F(RdChannelTest, AClosedWindowIsAskedAbout) {
  stand();
  for (int i = 0; i < 1500; ++i) p.send(kB, 5, text);
  talk();
  later(10ms);
  const size_t before = p.host.sent.size();
  bool asked = false;
  q.post_receives(1500);
  talk([&](bool from_a, const Buffer&) { return from_a; });
  EXPECT_EQ(p.host.sent.size(), before);
  later(20s, [&](bool from_a, const Buffer& d) {
    asked |= from_a && is_ctl(d, CtlType::ka);
    return true;
  });
  EXPECT_TRUE(asked);
  EXPECT_EQ(p.host.sent.size(), 1500U);
}

// A peer that answers again and again that it is full is asked once a second.
TEST_F(RdChannelTest, AFullPeerIsAskedSeldom) {
  stand();
  for (int i = 0; i < 1500; ++i) p.send(kB, 5, text);
  talk();
  later(3s);
  const uint64_t before = of_a().sender().counters().probes;
  later(5s);
  EXPECT_LE(of_a().sender().counters().probes - before, 5U);
  EXPECT_GE(of_a().sender().counters().probes - before, 4U);
  EXPECT_EQ(of_a().state(), RdChannel::State::open);
}

// spec/wdp-rd 4.4: a queue pair that takes nothing for ten seconds, while its messages fill half of
// the hold, loses them; others have waited long enough.
TEST_F(RdChannelTest, PatienceEnds) {
  stand();
  RdNode::Pair& other = b.add_pair(6);
  other.post_receives(10);
  for (int i = 0; i < 1500; ++i) p.send(kB, 5, text);
  p.send(kB, 6, text);
  talk();
  later(9s);
  EXPECT_EQ(other.received.size(), 0U);
  later(3s);
  EXPECT_EQ(other.received.size(), 1U);
  EXPECT_GT(of_b().receiver()->counters().given_up, 500U);
}

// The clock is not what patience is measured by: who was stopped has had no time.
TEST_F(RdChannelTest, AStoppedReceiverLosesNothing) {
  stand();
  for (int i = 0; i < 700; ++i) p.send(kB, 5, text);
  talk();
  later(100ms);
  now = now + 60s;
  b.tick(now);
  EXPECT_EQ(of_b().receiver()->counters().given_up, 0U);
  q.post_receives(700);
  EXPECT_EQ(q.received.size(), 700U);
}

// spec/wdp-rd 4.4: what no queue pair takes is dropped, as with any UD; the Send is complete.
TEST_F(RdChannelTest, NobodyThere) {
  stand();
  q.post_receives(2);
  p.send(kB, 77, text);
  p.q_key = QKey{0x99};
  p.send(kB, 5, text);
  talk();
  later(1ms);
  EXPECT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(b.socket.channels().drops().of(WdpDrop::no_such_qp), 1U);
  EXPECT_EQ(q.queue->counters().drops.of(WdpDrop::wrong_q_key), 1U);
  EXPECT_TRUE(q.received.empty());
}

// spec/wdp-rd 5.3: 24 questions in a row without an answer.
TEST_F(RdChannelTest, APeerThatGoesAway) {
  stand();
  b_gone = true;
  p.send(kB, 5, text);
  p.send(kB, 5, text);
  talk();
  later(10s);
  EXPECT_TRUE(p.host.sent.empty());
  later(10s);
  ASSERT_EQ(p.host.sent.size(), 2U);
  for (const auto& d : p.host.sent) EXPECT_EQ(d.status, Status::retry_exceeded);
  EXPECT_EQ(p.failures, 0);
  EXPECT_TRUE(a.links.empty());
  EXPECT_EQ(a.socket.channels().size(), 0U);
}

// spec/wdp-rd 5.3: after two questions it is worth asking the peer's kernel, until the peer
// speaks.
TEST_F(RdChannelTest, APeerThatIsSilentMayHaveGone) {
  stand();
  RdChannel& channel = a.links.front().channel;
  b_gone = true;
  p.send(kB, 5, text);
  talk();
  EXPECT_EQ(channel.silence(), 0U);
  later(1s);
  EXPECT_GE(channel.silence(), 2U);
  // From another port it means nothing.
  b_gone = false;
  const auto dropped = b.socket.drops().of(WdpDrop::wrong_address);
  Endpoint elsewhere = a.address;
  ++elsewhere.port;
  b.hear(channel.question(), elsewhere, now);
  EXPECT_EQ(b.socket.drops().of(WdpDrop::wrong_address), dropped + 1);
  later(5s);
  EXPECT_EQ(channel.silence(), 0U);
}

// spec/wdp-rd 5.1, RFC 9002 5.1: the second message was sent once, and waited for the answer to a
// copy of the first.
TEST_F(RdChannelTest, AcknowledgementsThatAreLostAreNoRoundTrip) {
  stand();
  q.post_receives(2);
  p.send(kB, 5, text);
  p.send(kB, 5, text);
  const Time until = now + 200ms;
  const auto no_acks = [&](bool from_a, const Buffer&) { return from_a || now >= until; };
  talk(no_acks);
  later(2s, no_acks);
  EXPECT_EQ(p.host.sent.size(), 2U);
  EXPECT_LT(of_a().sender().round_trip().latest(), 100ms);
}

// spec/wdp-rd 2.4: 120 s without anything, and both forget each other.
TEST_F(RdChannelTest, AnIdleChannelEnds) {
  stand();
  later(119s);
  EXPECT_EQ(a.links.size(), 1U);
  later(2s);
  EXPECT_TRUE(a.links.empty());
  EXPECT_TRUE(b.links.empty());
  q.post_receives(1);
  p.send(kB, 5, text);
  talk();
  later(1ms);
  EXPECT_EQ(q.received.size(), 1U);
}

// spec/wdp-rd 2.4: DREQ names CUM: what has come is complete, and the rest is not.
TEST_F(RdChannelTest, WhoLeavesSaysWhatHasCome) {
  stand();
  q.post_receives(8);
  const auto no_acks = [](bool, const Buffer& d) { return !is_ack(d); };
  p.send(kB, 5, text);
  talk(no_acks);
  p.send(kB, 5, text);
  talk([](bool, const Buffer& d) { return !is_data(d) && !is_ack(d); });
  of_b().close(now);
  talk(no_acks);
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.host.sent[0].status, Status::success);
  EXPECT_EQ(p.host.sent[1].status, Status::retry_exceeded);
  EXPECT_TRUE(b.links.empty()) << "the DREP came";
}

// spec/wdp-rd 2.4: a process is gone afterwards, and nobody says it once more.
TEST_F(RdChannelTest, AGoodbyeThatIsLostIsSaidAgainSoon) {
  stand();
  q.post_receives(1);
  p.send(kB, 5, text);
  talk([](bool, const Buffer& d) { return !is_ack(d); });
  of_b().close(now);
  int goodbyes = 0;
  const auto watch = [&](bool from_a, const Buffer& d) {
    return from_a || (is_ctl(d, CtlType::dreq) && ++goodbyes == 6);
  };
  talk(watch);
  EXPECT_EQ(b.links.front().channel.state(), RdChannel::State::closing);
  later(300ms, watch);
  EXPECT_EQ(goodbyes, 6);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.host.sent[0].status, Status::success);
  EXPECT_TRUE(b.links.empty());
}

// So often, and not for ever.
TEST_F(RdChannelTest, AGoodbyeToNobodyEnds) {
  stand();
  of_b().close(now);
  int goodbyes = 0;
  const auto watch = [&](bool from_a, const Buffer& d) {
    if (!from_a && is_ctl(d, CtlType::dreq)) ++goodbyes;
    return false;
  };
  talk(watch);
  later(1s, watch);
  EXPECT_EQ(goodbyes, 6);
  EXPECT_TRUE(b.links.empty());
}

// A stranger who speaks in a peer's name draws a cookie; the channel stands (spec/wdp-rd 2.2).
TEST_F(RdChannelTest, AStrangersRequestEndsNothing) {
  stand();
  WdpCtl c{.type = CtlType::req,
           .source_token = SessionToken{77},
           .source = make_qpn(RdNode::kPort, 0),
           .destination = make_qpn(RdNode::kPort, 0),
           .xid = Xid{5},
           .service = wire::CtlService::rd_channel,
           .ib_style = true,
           .max_payload = 1472};
  Buffer req(c.size());
  c.encode(req.data());
  b.hear(req, a.address, now);
  const auto answers = b.said(now);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(is_ctl(answers[0].bytes, CtlType::cookie));
  q.post_receives(1);
  p.send(kB, 5, text);
  talk();
  EXPECT_EQ(q.received.size(), 1U);
  // One who is there can show it.
  c.cookie = WdpCtl::parse(answers[0].bytes)->cookie;
  c.encode(req.data());
  b.hear(req, a.address, now);
  EXPECT_TRUE(is_ctl(b.said(now).at(0).bytes, CtlType::rep));
}

// A peer that begins anew on the same port takes the old channel's place.
TEST_F(RdChannelTest, APeerThatBeginsAnew) {
  stand();
  q.send(kA, 3, text);  // is lost with A's old life
  (void)b.said(now);
  RdNode again(kA, 99, now);
  RdNode::Pair& anew = again.add_pair(3);
  anew.send(kB, 5, text);
  anew.post_receives(1);
  q.post_receives(1);
  for (int i = 0; i < 50; ++i) {
    for (const auto& d : again.said(now)) b.hear(d.bytes, again.address, now);
    for (const auto& d : b.said(now)) again.hear(d.bytes, b.address, now);
    now = now + 100us;
    again.tick(now);
    b.tick(now);
  }
  EXPECT_EQ(q.received.size(), 1U);
  ASSERT_EQ(q.host.sent.size(), 1U);
  EXPECT_EQ(q.host.sent[0].status, Status::retry_exceeded);
  EXPECT_EQ(anew.host.sent.size(), 1U);
}

// What cannot be is dropped and counted, and draws nothing.
TEST_F(RdChannelTest, NonsenseIsCounted) {
  stand();
  wire::WdpAck ack{.token = of_b().token(), .cum = Csn{12345}};
  Buffer d(ack.size());
  // B has sent nothing: no CUM but its first CSN can be.
  ack.cum = of_b().sender().next_csn() + 1;
  ack.encode(d.data());
  b.hear(d, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::ack_beyond_sent), 1U);
  wire::WdpData data{.wdp_class = WdpClass::rd,
                     .didx = 5,
                     .sidx = 3,
                     .token = of_b().token(),
                     .psn = of_b().receiver()->cum() + kCsnWindow,
                     .msn = Msn{9},
                     .last = true,
                     .opcode = wire::Opcode::send,
                     .stride = 1};
  Buffer e(wire::WdpData::kSize);
  data.encode(e.data());
  b.hear(e, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::window_exceeded), 1U);
  data.didx = 0;
  data.encode(e.data());
  b.hear(e, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::index_mismatch), 1U);
  data.didx = 5;
  data.opcode = wire::Opcode::send_inv;
  data.encode(e.data());
  b.hear(e, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::bad_opcode), 1U);
  wire::WdpData read = data;
  read.psn = of_b().receiver()->cum();
  read.mo = MessageOffset{16};
  read.mlen = 32;
  read.wants_response = true;
  read.opcode = wire::Opcode::read_request;
  Buffer f(wire::WdpData::kSize + wire::WdpReadRange::kSize);
  read.encode(f.data());
  wire::WdpReadRange{.length = 16}.encode(f.data() + wire::WdpData::kSize);
  b.hear(f, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::read_range), 1U);
  read.mo = MessageOffset{0};
  read.mlen = (uint32_t{1} << 31) + 1;
  read.encode(f.data());
  wire::WdpReadRange{.length = read.mlen}.encode(f.data() + wire::WdpData::kSize);
  b.hear(f, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::message_length), 1U);
  b.hear(e, {Gid::from_ipv4(0x0a000009), RdNode::kPort}, now);
  EXPECT_EQ(b.socket.drops().of(WdpDrop::wrong_address), 1U);
  EXPECT_TRUE(b.said(now).empty());
}

// A queue pair that goes leaves its messages to the channel; what waits for its receives goes.
TEST_F(RdChannelTest, QueuePairsThatGo) {
  stand();
  RdNode::Pair& other = b.add_pair(6);
  p.send(kB, 6, text);
  p.send(kB, 5, text);
  q.post_receives(1);
  (void)other;
  talk([](bool, const Buffer& d) { return !is_data(d); });
  a.pairs.pop_front();
  later(10ms);
  EXPECT_EQ(q.received.size(), 1U) << "it comes though its sender is gone";
  EXPECT_FALSE(of_b().receiver()->holds_nothing());
  b.pairs.pop_back();
  EXPECT_TRUE(of_b().receiver()->holds_nothing());
  EXPECT_EQ(b.socket.channels().drops().of(WdpDrop::no_such_qp), 1U);
}

// spec/wdp 3.4: one side that wants CRCs makes both have them.
TEST_F(RdChannelTest, WithCrcs) {
  b.socket.channels().enable({.own_port = RdNode::kPort, .crc = true, .window = 1 << 20});
  stand();
  q.post_receives(2);
  p.send(kB, 5, text);
  int data = 0;
  for (auto& d : a.said(now)) {
    ++data;
    EXPECT_TRUE(wire::WdpCommon::parse(d.bytes)->flags.crc);
    d.bytes.back() ^= std::byte{1};
    b.hear(d.bytes, a.address, now);
  }
  EXPECT_EQ(data, 1);
  EXPECT_EQ(drops(b, WdpDrop::bad_crc), 1U);
  later(10ms);
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.received[0].bytes, text);
}

}  // namespace
}  // namespace weft::wdp
