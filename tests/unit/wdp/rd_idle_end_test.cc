// The end of an idle channel, and messages that meet it (spec/wdp-rd 2.4): they go by another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/support/append.h"
#include "tests/unit/wdp/rd_channel_fixture.h"
#include "tests/unit/wdp/rd_queue_fixture.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using test::address_of;
using test::Buffer;
using test::pattern_bytes;
using test::RdNode;
using wire::CtlType;
using wire::WdpDrop;
using work::Status;

// --- UD

struct RdIdleEnd : RdChannelTest {
  void SetUp() override {
    stand();
    q.post_receives(20);
    later(kIdleChannel - 5ms);
    ASSERT_EQ(a.links.size(), 1U);
    ASSERT_EQ(b.links.size(), 1U);
  }
  // B's channel ends while A's words are on their way. What B says then.
  std::vector<RdNode::Datagram> meet(const std::vector<RdNode::Datagram>& under_way) {
    now = now + 10ms;
    b.tick(now);
    EXPECT_EQ(of_b().state(), RdChannel::State::closing);
    for (const auto& d : under_way) b.hear(d.bytes, a.address, now);
    return b.said(now);
  }
  Buffer number(uint8_t n) { return pattern_bytes(500, n); }
  // The messages that came are these, in order, and each request was a success.
  void expect_exactly(std::initializer_list<uint8_t> numbers) {
    ASSERT_EQ(q.received.size(), numbers.size());
    size_t i = 0;
    for (const uint8_t n : numbers) EXPECT_EQ(q.received[i++].bytes, number(n));
    ASSERT_EQ(p.host.sent.size(), p.posted - 1);  // one was stand()'s
    for (const auto& d : p.host.sent) EXPECT_EQ(d.status, Status::success) << d.wr_id;
  }
};

TEST_F(RdIdleEnd, WhatMeetsItGoesByAnotherChannel) {
  p.send(kB, 5, number(1));
  p.send(kB, 5, number(2));
  const uint64_t sent = p.queue->counters().messages_sent;
  for (const auto& d : meet(a.said(now))) a.hear(d.bytes, b.address, now);
  EXPECT_TRUE(q.received.empty());
  EXPECT_EQ(drops(b, WdpDrop::unknown_token), 2U);
  p.send(kB, 5, number(3));
  talk();
  later(10ms);
  expect_exactly({1, 2, 3});
  EXPECT_EQ(p.queue->counters().messages_sent, sent + 3) << "each counts once";
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(b.links.size(), 1U);
}

// The first goodbye is lost, and data comes again meanwhile. It is not taken: the next goodbye says
// the same.
TEST_F(RdIdleEnd, AGoodbyeThatIsLostIsSaidAgain) {
  p.send(kB, 5, number(1));
  const auto lost = meet(a.said(now));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(wire::WdpCtl::parse(lost[0].bytes)->reason, 1U);
  int goodbyes = 0;
  const auto watch = [&](bool from_a, const Buffer& d) {
    return from_a || !is_ctl(d, CtlType::dreq) || ++goodbyes > 8;
  };
  later(2s, watch);
  EXPECT_GT(goodbyes, 8);
  later(10ms);
  expect_exactly({1});
}

// All goodbyes are lost, and a message of B's opens another channel: the REQ says what they said.
TEST_F(RdIdleEnd, WhereTheGoodbyeIsLostTheNextRequestSaysIt) {
  RdNode::Pair& from_b = b.add_pair(6);
  p.post_receives(1);
  p.send(kB, 5, number(1));
  p.send(kB, 5, number(2));
  ASSERT_EQ(meet(a.said(now)).size(), 1U) << "and it is lost";
  from_b.send(kA, 3, number(9));
  const auto watch = [&](bool from_a, const Buffer& d) {
    return from_a || !is_ctl(d, CtlType::dreq);
  };
  talk(watch);
  p.send(kB, 5, number(3));
  talk(watch);
  later(100ms, watch);
  expect_exactly({1, 2, 3});
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, number(9));
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(b.links.size(), 1U) << "the old one has heard DREP";
}

// As from a peer that has begun anew: nobody knows what that had taken.
TEST_F(RdIdleEnd, ARequestThatNamesAnotherChannelSaysNothing) {
  RdNode::Pair& from_b = b.add_pair(6);
  p.post_receives(1);
  p.send(kB, 5, number(1));
  ASSERT_EQ(meet(a.said(now)).size(), 1U);
  from_b.send(kA, 3, number(9));
  const auto watch = [&](bool from_a, const Buffer& d) {
    if (from_a) return true;
    if (is_ctl(d, CtlType::req)) {
      auto req = *wire::WdpCtl::parse(d);
      auto ended = wire::WdpEnded::find(req.tlvs);
      EXPECT_TRUE(ended);
      ended->token = SessionToken{ended->token.value() + 1};
      const auto tlv = ended->encode();
      req.tlvs = tlv;
      Buffer other(d.size());
      req.encode(other.data());
      a.hear(other, b.address, now);
      return false;
    }
    return !is_ctl(d, CtlType::dreq);
  };
  talk(watch);
  later(100ms, watch);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.host.sent[0].status, Status::retry_exceeded);
  EXPECT_EQ(p.received.size(), 1U);
}

// Nobody answers: it is not said for ever.
TEST_F(RdIdleEnd, ToNobodyItIsSaidSixteenTimes) {
  size_t goodbyes = meet({}).size();
  a_gone = true;
  const auto watch = [&](bool from_a, const Buffer& d) {
    if (!from_a && is_ctl(d, CtlType::dreq)) ++goodbyes;
    return false;
  };
  later(20s, watch);
  EXPECT_EQ(goodbyes, 16U);
  EXPECT_TRUE(b.links.empty());
}

// Both say goodbye at once. What is posted then goes by another channel, while these are there.
TEST_F(RdIdleEnd, BothSayIt) {
  now = now + 10ms;
  a.tick(now);
  b.tick(now);
  EXPECT_EQ(of_a().state(), RdChannel::State::closing);
  EXPECT_EQ(of_b().state(), RdChannel::State::closing);
  p.send(kB, 5, number(1));
  talk();
  later(10ms);
  expect_exactly({1});
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(b.links.size(), 1U);
}

// An older peer, whose DREQ has no reason.
TEST_F(RdIdleEnd, WithoutTheReasonNobodyKnowsWhatWasTaken) {
  p.send(kB, 5, number(1));
  for (auto& d : meet(a.said(now))) {
    auto dreq = *wire::WdpCtl::parse(d.bytes);
    ASSERT_EQ(dreq.type, CtlType::dreq);
    dreq.reason = 0;
    dreq.encode(d.bytes.data());
    a.hear(d.bytes, b.address, now);
  }
  talk();
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.host.sent[0].status, Status::retry_exceeded);
  EXPECT_TRUE(q.received.empty());
}

// Beyond a gap something was taken: CUM does not say what. Here a message of another flow, and A
// has heard of nothing for two minutes, as a process that was stopped.
TEST_F(RdIdleEnd, WithAGapNothingIsSentTwice) {
  RdNode::Pair& other = b.add_pair(6);
  other.post_receives(1);
  p.send(kB, 5, number(1));
  p.send(kB, 6, number(2));
  const auto both = a.said(now);
  ASSERT_EQ(both.size(), 2U);
  b.hear(both[1].bytes, a.address, now);
  (void)b.said(now);
  ASSERT_EQ(other.received.size(), 1U);
  now = now + kIdleChannel + 1ms;
  b.tick(now);
  for (const auto& d : b.said(now)) {
    ASSERT_TRUE(is_ctl(d.bytes, CtlType::dreq));
    EXPECT_EQ(wire::WdpCtl::parse(d.bytes)->reason, 0U);
    a.hear(d.bytes, b.address, now);
  }
  talk();
  later(1s);
  EXPECT_EQ(other.received.size(), 1U);
  ASSERT_EQ(p.host.sent.size(), 2U);
  for (const auto& d : p.host.sent) EXPECT_EQ(d.status, Status::retry_exceeded);
}

// In SQD no request begins; these had begun.
TEST_F(RdIdleEnd, AQueueThatDrainsSendsThemYet) {
  p.send(kB, 5, number(1));
  const auto under_way = a.said(now);
  p.queue->hold(true);
  p.send(kB, 5, number(2));
  for (const auto& d : meet(under_way)) a.hear(d.bytes, b.address, now);
  EXPECT_FALSE(p.queue->idle());
  talk();
  later(10ms);
  EXPECT_TRUE(p.queue->idle());
  ASSERT_EQ(q.received.size(), 1U);
  p.queue->hold(false);
  talk();
  later(10ms);
  expect_exactly({1, 2});
}

// Of two channels that end one after the other, the later one has the later message.
TEST_F(RdIdleEnd, WhatComesBackLaterDoesNotPassWhatCameBackBefore) {
  for (const size_t size : {100U, 200U, 300U}) p.send(kB, 5, pattern_bytes(size, size));
  (void)a.said(now);
  p.queue->message_ended(1, RdClient::End::returned);
  p.queue->message_ended(2, RdClient::End::returned);
  Buffer first;
  Train train;
  p.queue->fill(train, now);
  ASSERT_EQ(train.datagrams(), 1U) << "those of a train are as long as the first one";
  p.queue->llp_took_all(now);
  p.queue->message_ended(3, RdClient::End::returned);
  std::vector<size_t> sizes;
  for (int i = 0; i < 2; ++i) {
    Train next;
    p.queue->fill(next, now);
    next.each_datagram([&](std::span<const IoVec> pieces) {
      Buffer d;
      test::append(d, pieces);
      sizes.push_back(d.size());
    });
    p.queue->llp_took_all(now);
  }
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0] + 100, sizes[1]);
}

// --- RD

struct RdIdleEndOfRequests : RdQueueTest {
  void SetUp() override {
    q.post_receives(1);
    p.send(kB, 2, pattern_bytes(10, 1));
    talk();
    later(10ms);
    expect_all(p, Status::success);
    q.received.clear();
    q.post_receives(20);
    later(kIdleChannel - 20ms);
    ASSERT_EQ(a.links.size(), 1U);
    ASSERT_EQ(b.links.size(), 1U);
  }
  uint64_t counter() const {
    uint64_t n = 0;
    std::memcpy(&n, q.board.data(), sizeof n);
    return n;
  }
};

TEST_F(RdIdleEndOfRequests, EachThatMeetsItIsDoneOnce) {
  const TaggedOffset board = address_of(q.board);
  const Buffer& before = p.add(kB, 2, 3, q.rkey, board);
  p.send(kB, 2, pattern_bytes(4500, 2));
  p.write(kB, 2, pattern_bytes(3000, 3), q.rkey, board + 4096);
  const Buffer& back = p.read(kB, 2, 3000, q.rkey, board + 4096);
  p.send(kB, 2, pattern_bytes(20, 4));
  const auto under_way = a.said(now);
  now = now + 30ms;
  b.tick(now);
  ASSERT_EQ(b.links.front().channel.state(), RdChannel::State::closing);
  for (const auto& d : under_way) b.hear(d.bytes, a.address, now);
  EXPECT_EQ(counter(), 0U);
  talk();
  later(3s);
  expect_all(p, Status::success);
  EXPECT_EQ(counter(), 3U);
  EXPECT_EQ(before, Buffer(work::kAtomicBytes));
  EXPECT_EQ(back, pattern_bytes(3000, 3));
  ASSERT_EQ(q.received.size(), 2U);
  EXPECT_EQ(q.received[0].bytes, pattern_bytes(4500, 2));
  EXPECT_EQ(q.received[1].bytes, pattern_bytes(20, 4));
  // And flows go on as before.
  p.send(kB, 2, pattern_bytes(30, 5));
  talk();
  later(10ms);
  EXPECT_EQ(q.received.size(), 3U);
}

// B has done it, and its answer did not come: that is no idle channel, however long it lasts.
TEST_F(RdIdleEndOfRequests, WhatWasDoneAndNotHeardOfIsNotDoneAgain) {
  p.add(kB, 2, 3, q.rkey, address_of(q.board));
  for (const auto& d : a.said(now)) b.hear(d.bytes, a.address, now);
  EXPECT_EQ(counter(), 3U);
  a_gone = true;
  for (const Time until = now + kIdleChannel + 1s; now < until && !b.links.empty();) {
    now = std::min(until, std::max(b.deadline(), now + 1ms));
    b.tick(now);
    for (const auto& d : b.said(now)) {
      const auto c = wire::WdpCtl::parse(d.bytes);
      EXPECT_FALSE(c.ok() && c->type == CtlType::dreq && c->reason == 1U);
    }
  }
  a_gone = false;
  talk();
  later(30s);
  EXPECT_EQ(counter(), 3U);
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.host.sent[1].status, Status::retry_exceeded);
}

// A part of a datagram was done when memory ran out, and the datagram did not come again.
TEST_F(RdIdleEndOfRequests, NorIsAPartOfADatagramThatWasNotTakenWhole) {
  p.add(kB, 2, 3, q.rkey, address_of(q.board));
  p.send(kB, 2, pattern_bytes(20, 4));
  const auto bundle = a.said(now);
  ASSERT_EQ(bundle.size(), 1U);
  q.lacks_memory = true;
  b.hear(bundle[0].bytes, a.address, now);
  EXPECT_EQ(counter(), 3U);
  EXPECT_TRUE(q.received.empty());
  EXPECT_FALSE(b.links.front().channel.receiver()->has_all_before_cum());
}

}  // namespace
}  // namespace weft::wdp
