// Receives of queue pairs of type RD: RNR, READY, and messages that are left in the middle.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/wdp/rd_queue_fixture.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using test::address_of;
using test::Buffer;
using test::has_message;
using test::messages_in;
using test::pattern_bytes;
using test::RdNode;
using wire::Opcode;
using wire::WdpData;
using wire::WdpResponse;
using work::Status;
using Code = WdpResponse::Code;

TEST_F(RdQueueTest, AFlowThatWaitsHoldsUpNoOther) {
  RdNode::Member& r = b.add_member(3);
  r.post_receives(1);
  for (int i = 0; i < 3; ++i) p.send(kB, 2, pattern_bytes(3000, 1));
  p.send(kB, 3, pattern_bytes(10, 2));
  talk();
  EXPECT_EQ(r.received.size(), 1U);
  EXPECT_TRUE(p.host.sent.empty()) << "completions are in order";
  q.post_receives(3);
  talk();
  later(1ms);
  EXPECT_EQ(q.received.size(), 3U);
  expect_all(p, Status::success);
}

// Who posts a Send has no receive for anybody.
TEST_F(RdQueueTest, ReadyIsSaidOfReceivesAlone) {
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  EXPECT_EQ(q.queue->responder().refused(), 1U);
  for (int i = 0; i < 3; ++i) {
    q.queue->posted();
    talk();
  }
  EXPECT_EQ(q.queue->responder().refused(), 1U);
  q.post_receives(1);
  talk();
  expect_all(p, Status::success);
}

// spec/wdp-rd 6.4: the number of the flow's last message that began to come, here one that was
// dropped behind the refused one.
TEST_F(RdQueueTest, ReadyNamesTheLastMessageThatCame) {
  for (int i = 0; i < 3; ++i) p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  q.post_receives(3);
  std::vector<WdpResponse> said;
  later(1ms, keep_responses(said));
  expect_all(p, Status::success);
  const auto ready = std::find_if(said.begin(), said.end(),
                                  [](const WdpResponse& r) { return r.code == Code::ready; });
  ASSERT_NE(ready, said.end());
  EXPECT_EQ(ready->msn, Msn{3});
}

// And the requester looks at the flow alone.
TEST_F(RdQueueTest, ReadyOfAnyMessageIsHeard) {
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  q.host.post_receive(0, {test::segment(q.host, q.rooms.emplace_back(1000))});
  tell(p, {.qidx = 1, .ridx = 2, .code = Code::ready, .msn = Msn{0x7fff'0000}});
  talk();
  later(1ms);
  expect_all(p, Status::success);
}

// READY that is for nothing, as another peer was first.
TEST_F(RdQueueTest, WithoutReadyItComesAgainAfterTheDelay) {
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  EXPECT_EQ(q.queue->responder().refused(), 1U);
  later(9ms);
  EXPECT_EQ(q.queue->responder().refused(), 1U);
  later(100ms);
  EXPECT_GT(q.queue->responder().refused(), 5U);
  EXPECT_LT(q.queue->responder().refused(), 13U);
}

TEST_F(RdQueueTest, RnrRetriesEndAndTheNextIsHeard) {
  p.queue->set_attributes(QKey{RdNode::kQKey}, 2);
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  later(100ms);
  expect_all(p, Status::rnr_retry_exceeded);
  EXPECT_EQ(q.queue->responder().refused(), 3U);
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(10, 2));
  talk();
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.received[0].bytes, pattern_bytes(10, 2));
}

// spec/wdp-rd 6.5: its sender lives, and says no more of the message.
TEST_F(RdQueueTest, AMessageThatDoesNotGoOnLosesItsReceive) {
  q.post_receives(1);
  p.send(kB, 2, {});
  talk();
  q.post_receives(1);
  const WdpData first{.wdp_class = wire::WdpClass::rd,
                      .didx = 2,
                      .sidx = 9,
                      .msn = Msn{1},
                      .mlen = 32,
                      .flow_open = true,
                      .wants_response = true,
                      .opcode = Opcode::send,
                      .stride = 16,
                      .to = TaggedOffset{uint64_t{RdNode::kQKey} << 32}};
  RdChannel& channel = b.links.front().channel;
  q.queue->take(channel, {.header = first}, Buffer(16));
  EXPECT_TRUE(q.host.receives.empty());
  std::vector<WdpResponse> said;
  const auto watch = keep_responses(said);
  later(29s, watch);
  EXPECT_TRUE(q.host.receives.empty());
  EXPECT_TRUE(said.empty());
  // Another peer waits for one.
  p.send(kB, 2, pattern_bytes(10, 2));
  later(3s, watch);
  EXPECT_EQ(q.received.size(), 2U);
  expect_all(p, Status::success);
  EXPECT_TRUE(std::any_of(said.begin(), said.end(), [](const WdpResponse& r) {
    return r.qidx == 9 && r.code == Code::operation && r.msn == Msn{1};
  }));
}

// One that goes on slowly keeps it.
TEST_F(RdQueueTest, AMessageThatGoesOnSlowlyIsDelivered) {
  q.post_receives(1);
  p.send(kB, 2, {});
  talk();
  q.post_receives(1);
  WdpData d{.wdp_class = wire::WdpClass::rd,
            .didx = 2,
            .sidx = 9,
            .msn = Msn{1},
            .mlen = 48,
            .flow_open = true,
            .wants_response = true,
            .opcode = Opcode::send,
            .stride = 16,
            .to = TaggedOffset{uint64_t{RdNode::kQKey} << 32}};
  RdChannel& channel = b.links.front().channel;
  for (uint32_t at = 0; at < 48; at += 16) {
    d.mo = MessageOffset{at};
    d.last = at == 32;
    q.queue->take(channel, {.header = d}, Buffer(16));
    later(25s);
  }
  EXPECT_EQ(q.received.size(), 2U);
}

// spec/wdp-rd 6.3
TEST_F(RdQueueTest, WhoGoesInTheMiddleOfAMessageLeavesTheFlowInOrder) {
  Buffer large(4 << 20);
  q.host.post_receive(0, {test::segment(q.host, large)});
  q.rooms.emplace_back(4 << 20);
  p.send(kB, 2, Buffer(4 << 20));
  // The receiver takes a part of it: nothing is acknowledged, and the channel has no room for more.
  talk([](bool, const Buffer& bytes) {
    const auto common = wire::WdpCommon::parse(bytes);
    return common.ok() && common->wdp_class != wire::WdpClass::rd_ack;
  });
  ASSERT_TRUE(p.host.sent.empty());
  ASSERT_TRUE(q.host.receives.empty());
  p.queue.reset();
  talk();
  later(5s);
  // The same number again, and the receive that the first one had.
  RdNode::Member& next = a.members.emplace_back(a, uint8_t{1});
  next.send(kB, 2, pattern_bytes(10, 2));
  talk();
  later(100ms);
  expect_all(next, Status::success);
  EXPECT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.flushed, 0U);
  q.queue.reset();
  EXPECT_EQ(q.flushed, 0U);
}

TEST_F(RdQueueTest, WhoGoesAfterARefusalLeavesTheFlowOpen) {
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  p.queue.reset();
  q.post_receives(1);
  RdNode::Member& next = a.members.emplace_back(a, uint8_t{1});
  next.send(kB, 2, pattern_bytes(10, 2));
  talk();
  later(1ms);
  expect_all(next, Status::success);
}

// What is behind a refused message comes again. Another life of the queue pair, which knows nothing
// of the refusal, must not do it before.
TEST_F(RdQueueTest, ARefusalIsMoreThanALifeOfTheQueuePair) {
  const TaggedOffset board = address_of(q.board);
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  ASSERT_EQ(p.host.sent.size(), 1U);
  p.send(kB, 2, pattern_bytes(10, 2));
  for (const auto& d : a.said(now)) b.hear(d.bytes, a.address, now);
  EXPECT_EQ(q.queue->responder().refused(), 1U);
  const auto refusal = b.said(now);
  p.add(kB, 2, 7, q.rkey, board);
  q.queue.reset();
  q.queue = std::make_unique<RdQueue>(b.socket.channels(), q,
                                      RdQueue::Parameters{.own_qpn = q.number, .q_key = q.q_key});
  for (const auto& d : a.said(now)) b.hear(d.bytes, a.address, now);
  for (const auto& d : refusal) a.hear(d.bytes, b.address, now);
  talk();
  q.post_receives(1);
  later(100ms);
  expect_all(p, Status::success);
  uint64_t value = 0;
  std::memcpy(&value, q.board.data(), sizeof value);
  EXPECT_EQ(value, 7U) << "once";
}

// A flow that always has something unanswered is opened nevertheless.
TEST_F(RdQueueTest, AnotherLifeOfTheResponderIsHeard) {
  const TaggedOffset board = address_of(q.board);
  p.add(kB, 2, 1, q.rkey, board);
  talk();
  later(1ms);
  ASSERT_EQ(p.host.sent.size(), 1U);
  for (int i = 0; i < 2; ++i) {
    p.add(kB, 2, 1, q.rkey, board);
    (void)a.said(now);  // lost, and said again
  }
  q.queue.reset();
  // The first one has F, and nobody is there for it; the second one comes to the new queue pair.
  int seen = 0;
  later(1s, [&](bool from_a, const Buffer& bytes) {
    if (from_a && has_message(bytes, Opcode::atomic_request) && ++seen == 2) {
      q.queue = std::make_unique<RdQueue>(
          b.socket.channels(), q, RdQueue::Parameters{.own_qpn = q.number, .q_key = q.q_key});
      p.add(kB, 2, 1, q.rkey, board);
    }
    return true;
  });
  ASSERT_EQ(p.host.sent.size(), 4U);
  EXPECT_EQ(p.status_of(1), Status::remote_invalid_rd_request);
  EXPECT_EQ(p.status_of(2), Status::remote_invalid_rd_request);
  EXPECT_EQ(p.status_of(3), Status::success);
}

TEST_F(RdQueueTest, AResponderThatGoesSaysSo) {
  const TaggedOffset board = address_of(q.board);
  q.post_receives(1);
  p.read(kB, 2, RdNode::Member::kBoard, q.rkey, board);
  p.send(kB, 2, pattern_bytes(10, 1));
  // The Read is asked for, and answered in part.
  a.said(now);
  talk([](bool from_a, const Buffer&) { return from_a; });
  q.queue.reset();
  later(2s);
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_TRUE(p.queue->idle());
}

}  // namespace
}  // namespace weft::wdp
