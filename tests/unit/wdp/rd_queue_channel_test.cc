// Queue pairs of type RD and their channels: peers that go, paths, and what is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/unit/wdp/rd_queue_fixture.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using test::address_of;
using test::Buffer;
using test::pattern_bytes;
using test::RdNode;
using work::Status;

TEST_F(RdQueueTest, APeerThatIsGone) {
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  expect_all(p, Status::success);
  b_gone = true;
  p.send(kB, 2, pattern_bytes(10, 1));
  p.add(kB, 2, 10, q.rkey, address_of(q.board));
  later(60s);
  ASSERT_EQ(p.host.sent.size(), 3U);
  EXPECT_EQ(p.status_of(1), Status::retry_exceeded);
  EXPECT_EQ(p.status_of(2), Status::retry_exceeded);
  EXPECT_TRUE(a.links.empty());
  // And another life of it.
  b_gone = false;
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(10, 1));
  later(20s);
  EXPECT_EQ(p.host.sent.size(), 4U);
}

// spec/wdp-rd 5.5: a path that is narrower than this host's interface.
TEST_F(RdQueueTest, SegmentsFitThePath) {
  q.post_receives(2);
  size_t largest = 0;
  const auto narrow = [&](bool, const Buffer& bytes) {
    if (bytes.size() > 1400) return false;
    largest = std::max(largest, bytes.size());
    return true;
  };
  p.send(kB, 2, pattern_bytes(10, 1));
  p.send(kB, 2, pattern_bytes(4500, 2));
  std::ranges::copy(pattern_bytes(q.board.size(), 3), q.board.begin());
  const Buffer& back = p.read(kB, 2, 5000, q.rkey, address_of(q.board));
  talk(narrow);
  EXPECT_EQ(q.received.size(), 1U) << "a short one does not wait";
  later(2s, narrow);
  expect_all(p, Status::success);
  ASSERT_EQ(q.received.size(), 2U);
  EXPECT_EQ(q.received[1].bytes, pattern_bytes(4500, 2));
  EXPECT_EQ(back, Buffer(q.board.begin(), q.board.begin() + 5000));
  EXPECT_GT(largest, 1300U) << "and not the least that every path carries";
}

// Who does not answer, as an older weft: the least is used after a second.
TEST_F(RdQueueTest, WithoutAnswersSegmentsAreTheLeast) {
  q.post_receives(1);
  const auto silent = [](bool, const Buffer& bytes) {
    const auto common = wire::WdpCommon::parse(bytes);
    if (!common.ok() || common->wdp_class != wire::WdpClass::ctl) return bytes.size() <= 548;
    const auto ctl = wire::WdpCtl::parse(*common, bytes);
    return !ctl.ok() || ctl->type != wire::CtlType::probe;
  };
  p.send(kB, 2, pattern_bytes(4500, 2));
  talk(silent);
  later(900ms, silent);
  EXPECT_TRUE(q.received.empty());
  later(200ms, silent);
  EXPECT_EQ(q.received.size(), 1U);
  expect_all(p, Status::success);
}

// The peer answers questions all the time.
TEST_F(RdQueueTest, WhatThePathDoesNotCarryEnds) {
  q.post_receives(2);
  const auto narrow = [](bool, const Buffer& bytes) { return bytes.size() <= 400; };
  p.send(kB, 2, pattern_bytes(10, 1));
  talk(narrow);
  later(1ms, narrow);
  expect_all(p, Status::success);
  p.send(kB, 2, pattern_bytes(4500, 1));
  talk(narrow);
  later(60s, narrow);
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.status_of(1), Status::retry_exceeded);
}

// A request that waits for its peer's receives says nothing; the channel asks whether it lives.
TEST_F(RdQueueTest, AChannelWithARequestThatWaitsDoesNotRest) {
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  b_gone = true;
  later(60s);
  expect_all(p, Status::retry_exceeded);
}

// What comes when this side has said goodbye is not carried out: nothing could be said of it.
TEST_F(RdQueueTest, AChannelThatEndsTakesNoRequests) {
  q.post_receives(1);
  talk();
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  later(1ms);
  RdChannel& channel = b.links.front().channel;
  channel.close(now);
  EXPECT_EQ(channel.state(), RdChannel::State::closing);
  p.read(kB, 2, 64, q.rkey, address_of(q.board));
  p.send(kB, 2, pattern_bytes(10, 1));
  for (const auto& d : a.said(now)) b.hear(d.bytes, a.address, now);
  if (q.queue->ready(now)) {
    Train none;
    q.queue->fill(none, now);
  }
  EXPECT_TRUE(channel.sender().idle());
  EXPECT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.queue->responder().refused(), 0U);
}

TEST_F(RdQueueTest, AHostWithoutChannels) {
  RdNode c{3, 3, now, false};
  p.send(3, 1, pattern_bytes(10, 1));
  for (int i = 0; i < 10; ++i) {
    for (const auto& d : a.said(now)) c.hear(d.bytes, a.address, now);
    for (const auto& d : c.said(now)) a.hear(d.bytes, c.address, now);
  }
  expect_all(p, Status::remote_invalid_rd_request);
}

// --- what is kept

TEST_F(RdQueueTest, FlowsThatRestAreForgotten) {
  for (int i = 2; i <= 254; ++i) {
    p.send(kB, static_cast<uint8_t>(i), pattern_bytes(10, 1));
    q.post_receives(1);
    talk();
  }
  ASSERT_EQ(p.host.sent.size(), 253U);
  EXPECT_LE(p.queue->requester().flows(), 64U);
  // One that was forgotten is as good as any.
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  later(1ms);
  EXPECT_EQ(p.host.sent.back().status, Status::success);
}

TEST_F(RdQueueTest, FlowsToPeersWithoutChannelsAreForgotten) {
  for (uint8_t i = 100; i < 200; ++i) {
    const std::unique_ptr<RdNode> c = std::make_unique<RdNode>(i, i, now, false);
    p.send(i, 1, pattern_bytes(10, 1));
    for (int round = 0; round < 4; ++round) {
      for (const auto& d : a.said(now)) c->hear(d.bytes, a.address, now);
      for (const auto& d : c->said(now)) a.hear(d.bytes, c->address, now);
    }
  }
  expect_all(p, Status::remote_invalid_rd_request);
  EXPECT_LE(p.queue->requester().flows(), 64U);
}

// Where a peer's queue pairs come and go, and its socket stays.
TEST_F(RdQueueTest, WhatIsKeptOfAPeersQueuePairGoes) {
  for (uint8_t i = 10; i < 40; ++i) {
    RdNode::Member& m = a.add_member(i);
    q.post_receives(1);
    m.send(kB, 2, pattern_bytes(10, i));
    talk();
    later(10s);
    expect_all(m, Status::success);
    m.queue.reset();
  }
  EXPECT_EQ(q.received.size(), 30U);
  EXPECT_LE(q.queue->responder().flows(), 13U);
}

}  // namespace
}  // namespace weft::wdp
