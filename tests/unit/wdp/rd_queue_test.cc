#include "wdp/rd_queue.h"

#include <gtest/gtest.h>

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
using work::Operation;
using work::Status;
using Code = WdpResponse::Code;

TEST_F(RdQueueTest, ASendOfManySegmentsIsOneMessage) {
  q.post_receives(2);
  p.send(kB, 2, pattern_bytes(4500, 1));
  p.send(kB, 2, {});
  talk();
  ASSERT_EQ(q.received.size(), 2U);
  EXPECT_EQ(q.received[0].bytes, pattern_bytes(4500, 1));
  EXPECT_EQ(q.received[0].source, p.number);
  EXPECT_TRUE(q.received[1].bytes.empty());
  expect_all(p, Status::success);
}

// spec/wdp-rd 4.3: whatever comes first, segments are placed in the order of their flow.
TEST_F(RdQueueTest, SegmentsThatAreLostComeAgain) {
  q.post_receives(20);
  int n = 0;
  for (uint8_t i = 0; i < 20; ++i) p.send(kB, 2, pattern_bytes(4500, i));
  const auto watch = [&](bool, const Buffer&) { return ++n % 5 != 0; };
  talk(watch);
  later(2s, watch);
  ASSERT_EQ(q.received.size(), 20U);
  for (uint8_t i = 0; i < 20; ++i) EXPECT_EQ(q.received[i].bytes, pattern_bytes(4500, i));
  expect_all(p, Status::success);
}

// spec/wdp-rd 6.4: an acknowledgement of the channel is not one of the message.
TEST_F(RdQueueTest, CompleteWhenDeliveredAndNotWhenItHasCome) {
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  later(1ms);
  EXPECT_TRUE(a.links.front().channel.sender().idle());
  EXPECT_TRUE(p.host.sent.empty());
  q.post_receives(1);
  talk();
  expect_all(p, Status::success);
}

TEST_F(RdQueueTest, OneRespForManyMessages) {
  q.post_receives(50);
  talk();
  for (int i = 0; i < 50; ++i) p.send(kB, 2, pattern_bytes(10, 1));
  std::map<Opcode, int> seen;
  talk(count(seen, false));
  expect_all(p, Status::success);
  EXPECT_LE(seen[Opcode::terminate], 4);
}

TEST_F(RdQueueTest, WritesReadsAndAtomics) {
  const TaggedOffset board = address_of(q.board);
  p.write(kB, 2, pattern_bytes(5000, 4), q.rkey, board + 8);
  Buffer& back = p.read(kB, 2, 5000, q.rkey, board + 8);
  Buffer& before = p.add(kB, 2, 7, q.rkey, board);
  Buffer& later_value = p.add(kB, 2, 1, q.rkey, board);
  talk();
  later(1ms);
  expect_all(p, Status::success);
  EXPECT_EQ(back, pattern_bytes(5000, 4));
  uint64_t value = 0;
  std::memcpy(&value, before.data(), sizeof value);
  EXPECT_EQ(value, 0U);
  std::memcpy(&value, later_value.data(), sizeof value);
  EXPECT_EQ(value, 7U);
  std::memcpy(&value, q.board.data(), sizeof value);
  EXPECT_EQ(value, 8U);
}

TEST_F(RdQueueTest, AtMostSixteenReadsAreUnanswered) {
  const TaggedOffset board = address_of(q.board);
  p.write(kB, 2, pattern_bytes(64, 4), q.rkey, board);
  talk();
  for (int i = 0; i < 40; ++i) p.read(kB, 2, 64, q.rkey, board);
  std::map<Opcode, int> seen;
  bool answers = false;
  const auto watch = [&](bool from_a, const Buffer& bytes) {
    for (const auto& m : messages_in(bytes)) seen[m.header.opcode] += from_a ? 1 : 0;
    return from_a || answers || !has_message(bytes, Opcode::read_response);
  };
  talk(watch);
  EXPECT_EQ(seen[Opcode::read_request], static_cast<int>(kFlowReads));
  answers = true;
  later(2s, watch);
  expect_all(p, Status::success);
}

// One that fails at its own side makes room for the next one, too.
TEST_F(RdQueueTest, AReadWhoseMemoryIsGoneMakesRoomForAnother) {
  const TaggedOffset board = address_of(q.board);
  for (uint32_t i = 0; i <= kFlowReads; ++i) p.read(kB, 2, 64, q.rkey, board);
  std::map<Opcode, int> seen;
  talk([&](bool from_a, const Buffer& bytes) {
    for (const auto& m : messages_in(bytes)) seen[m.header.opcode] += from_a ? 1 : 0;
    if (from_a && seen[Opcode::read_request] == static_cast<int>(kFlowReads)) {
      for (uint32_t i = 0; i < kFlowReads; ++i) {
        p.host.regions.erase(p.host.send_queue().at(i).segment()->lkey);
      }
    }
    return true;
  });
  ASSERT_EQ(p.host.sent.size(), kFlowReads + 1);
  EXPECT_EQ(p.status_of(0), Status::local_protection);
  EXPECT_EQ(p.status_of(kFlowReads), Status::success);
}

// The answer to one that has failed here is under way yet: another 16 would be too many.
TEST_F(RdQueueTest, AReadThatFailsHereKeepsItsPlaceUntilItsAnswerIsOver) {
  Buffer large(size_t{4} << 20);
  const Stag key = q.host.add_region(large);
  p.read(kB, 2, large.size(), key, address_of(large));
  for (uint32_t i = 0; i < kFlowReads; ++i) p.read(kB, 2, 64, key, address_of(large));
  p.host.regions.erase(p.host.send_queue().at(0).segment()->lkey);
  later(2s);
  ASSERT_EQ(p.host.sent.size(), kFlowReads + 1);
  EXPECT_EQ(p.status_of(0), Status::local_protection);
  for (uint32_t i = 1; i <= kFlowReads; ++i) EXPECT_EQ(p.status_of(i), Status::success) << i;
  EXPECT_EQ(q.queue->responder().drops().of(wire::WdpDrop::too_many_reads), 0U);
}

// spec/wdp-rd 6.3
TEST_F(RdQueueTest, WhoGoesWantsNoAnswersToItsReads) {
  Buffer large = pattern_bytes(size_t{512} << 10, 5);
  const Stag key = q.host.add_region(large);
  for (uint32_t i = 0; i < kFlowReads; ++i) {
    p.read(kB, 2, large.size(), key, address_of(large));
  }
  // The first one is answered in part: more than the channel keeps is wanted.
  bool answers = false;
  std::map<Opcode, int> seen;
  const auto watch = [&](bool from_a, const Buffer& bytes) {
    for (const auto& m : messages_in(bytes)) seen[m.header.opcode] += from_a ? 0 : 1;
    return from_a || answers || !has_message(bytes, Opcode::read_response);
  };
  talk(watch);
  ASSERT_GT(seen[Opcode::read_response], 0);
  p.queue.reset();
  talk(watch);
  answers = true;
  RdNode::Member& next = a.members.emplace_back(a, uint8_t{1});
  for (uint32_t i = 0; i < kFlowReads; ++i) next.read(kB, 2, 64, key, address_of(large, i * 100));
  later(2s, watch);
  expect_all(next, Status::success);
  for (uint32_t i = 0; i < kFlowReads; ++i) {
    const auto from = large.begin() + i * 100;
    EXPECT_EQ(next.kept.at(i), Buffer(from, from + 64)) << i;
  }
  EXPECT_LT(seen[Opcode::read_response], 3000) << "of 5904";
  EXPECT_EQ(q.queue->responder().drops().of(wire::WdpDrop::too_many_reads), 0U);
}

TEST_F(RdQueueTest, AFenceWaitsForReads) {
  const TaggedOffset board = address_of(q.board);
  q.post_receives(1);
  p.read(kB, 2, 64, q.rkey, board);
  p.post(kB, 2, p.kept.emplace_back(pattern_bytes(9, 1)),
         {.operation = Operation::send, .fence = true});
  bool answers = false;
  const auto watch = [&](bool from_a, const Buffer& bytes) {
    return from_a || answers || !has_message(bytes, Opcode::read_response);
  };
  talk(watch);
  EXPECT_TRUE(q.received.empty());
  answers = true;
  later(1s, watch);
  EXPECT_EQ(q.received.size(), 1U);
  expect_all(p, Status::success);
}

// --- errors

TEST_F(RdQueueTest, AnErrorIsThatOfItsRequestAlone) {
  const TaggedOffset board = address_of(q.board);
  q.post_receives(1);
  p.write(kB, 2, pattern_bytes(5000, 1), Stag{1}, board);                                   // 0
  p.write(kB, 2, pattern_bytes(5000, 1), q.rkey, board + (RdNode::Member::kBoard - 4999));  // 1
  p.read(kB, 2, 10, Stag{1}, board);                                                        // 2
  p.add(kB, 2, 10, q.rkey, board + 4);                                                      // 3
  p.send(kB, 2, Buffer(RdNode::Member::kRoom + 1));                                         // 4
  p.send(kB, 77, Buffer(10));                                                               // 5
  p.send(kB, 0, Buffer(10));                                                                // 6
  p.send(kB, 2, Buffer(10));                                                                // 7
  talk();
  later(10ms);
  ASSERT_EQ(p.host.sent.size(), 8U);
  const Status expected[] = {Status::remote_access,
                             Status::remote_access,
                             Status::remote_access,
                             Status::remote_operation,
                             Status::remote_invalid_request,
                             Status::remote_invalid_rd_request,
                             Status::remote_invalid_rd_request,
                             Status::success};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(p.status_of(i), expected[i]) << i;
  EXPECT_EQ(q.board, Buffer(RdNode::Member::kBoard)) << "nothing of a bad Write is written";
}

TEST_F(RdQueueTest, AnotherQKey) {
  q.post_receives(1);
  p.q_key = QKey{5};
  p.send(kB, 2, Buffer(10));
  talk();
  expect_all(p, Status::remote_invalid_rd_request);
  EXPECT_EQ(q.queue->responder().drops().of(wire::WdpDrop::wrong_q_key), 1U);
}

// The answer comes while most of the message is yet to be said: it is said no more.
TEST_F(RdQueueTest, ALongMessageThatFailsEnds) {
  p.write(kB, 2, Buffer(4 << 20), Stag{1}, TaggedOffset{0});
  q.post_receives(1);
  p.send(kB, 2, Buffer(10));
  std::map<Opcode, int> seen;
  later(200ms, count(seen, true));
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.status_of(0), Status::remote_access);
  EXPECT_EQ(p.status_of(1), Status::success);
  EXPECT_LT(seen[Opcode::write], 2000) << "of 2946 segments";
}

// Memory of the request that goes while it is sent.
TEST_F(RdQueueTest, OwnMemoryThatIsGone) {
  q.post_receives(2);
  p.send(kB, 2, Buffer(5000));
  const Stag key = p.host.send_queue().at(0).segment()->lkey;
  p.host.regions.erase(key);
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.status_of(0), Status::local_protection);
  EXPECT_EQ(p.status_of(1), Status::success);
}

// --- what a peer says that is not so

// spec/wdp-rd 6.4: a peer that hears none of its answers could make us keep them for ever.
TEST_F(RdQueueTest, WhoLeavesItsAnswersUnheardIsNotServed) {
  q.post_receives(2);
  p.send(kB, 2, pattern_bytes(10, 1));
  talk();
  later(1ms);
  RdChannel& channel = b.links.front().channel;
  for (uint32_t i = 0; i < kMostUnsaid; ++i) {
    channel.out().respond({.qidx = 9, .ridx = 2, .code = Code::length, .msn = Msn{i}});
  }
  p.send(kB, 2, pattern_bytes(10, 2));
  for (const auto& d : a.said(now)) b.hear(d.bytes, a.address, now);
  EXPECT_EQ(q.received.size(), 1U);
  EXPECT_EQ(b.socket.channels().drops().of(wire::WdpDrop::window_exceeded), 1U);
  later(1s);
  EXPECT_EQ(q.received.size(), 2U) << "it was not acknowledged";
  expect_all(p, Status::success);
}

TEST_F(RdQueueTest, AnswersToWhatWasNotAsked) {
  p.send(kB, 2, pattern_bytes(10, 1));
  p.read(kB, 2, 64, q.rkey, address_of(q.board));
  talk([](bool from_a, const Buffer& bytes) {
    // The peer hears nothing of them.
    return !from_a || messages_in(bytes).empty();
  });
  for (const Code code : {Code::ack, Code::rnr, Code::length, Code::ready, Code{99}}) {
    tell(p, {.qidx = 1, .ridx = 9, .code = code, .msn = Msn{1}});
    tell(p, {.qidx = 1, .ridx = 2, .code = code, .msn = Msn{77}});
  }
  // An ACK of the Read alone: it needs its response. All up to 77 are acknowledged.
  ASSERT_EQ(p.host.sent.size(), 1U);
  RdChannel& channel = a.links.front().channel;
  const Buffer bytes(64);
  WdpData d{.wdp_class = wire::WdpClass::rd,
            .didx = 1,
            .sidx = 2,
            .mlen = 65,
            .last = true,
            .opcode = Opcode::read_response,
            .stride = 1424,
            .imm_or_read = 2};
  p.queue->take(channel, {.header = d}, bytes);  // of another length
  d.imm_or_read = 1;
  d.mlen = 64;
  p.queue->take(channel, {.header = d}, bytes);  // to a Send
  EXPECT_EQ(p.host.sent.size(), 1U);
  d.imm_or_read = 2;
  p.queue->take(channel, {.header = d}, bytes);
  expect_all(p, Status::success);
}

TEST_F(RdQueueTest, RequestsThatAreWrong) {
  p.send(kB, 2, {});
  talk();
  later(1ms);
  RdChannel& channel = b.links.front().channel;
  WdpData d{.wdp_class = wire::WdpClass::rd,
            .didx = 2,
            .sidx = 1,
            .mlen = 100,
            .last = true,
            .flow_open = true,
            .wants_response = true,
            .opcode = Opcode::send_inv,
            .stride = 1424};
  q.queue->take(channel, {.header = d}, Buffer(100));
  // A range that is not the whole Read.
  d.opcode = Opcode::read_request;
  Buffer range(8);
  wire::WdpReadRange{.length = 10}.encode(range.data());
  d.stag = q.rkey;
  d.to = address_of(q.board);
  q.queue->take(channel, {.header = d}, range);
  // And an identifier that is not the request's own number.
  wire::WdpReadRange{.length = 100}.encode(range.data());
  d.imm_or_read = 7;
  q.queue->take(channel, {.header = d}, range);
  EXPECT_EQ(q.queue->responder().drops().of(wire::WdpDrop::too_many_reads), 2U);
  Buffer atomic(wire::AtomicRequest::kSize);
  wire::AtomicRequest{.request_id = 7, .stag = q.rkey, .to = d.to, .add_swap = 1}.encode(
      atomic.data());
  WdpData add = d;
  add.opcode = Opcode::atomic_request;
  add.mlen = wire::AtomicRequest::kSize;
  q.queue->take(channel, {.header = add}, atomic);
  EXPECT_EQ(q.queue->responder().drops().of(wire::WdpDrop::too_many_reads), 3U);
  // The middle of a message that never began, and an END of none.
  d.opcode = Opcode::send;
  d.mo = MessageOffset{1424};
  q.queue->take(channel, {.header = d}, Buffer(100));
  d.opcode = Opcode::terminate;
  q.queue->take(channel, {.header = d}, {});
  EXPECT_EQ(q.queue->responder().drops().of(wire::WdpDrop::bad_opcode), 1U);
  EXPECT_TRUE(q.received.empty());
  EXPECT_TRUE(q.host.received.empty());
}

// A second segment that is of another message than the first one: the receive is for the next one.
TEST_F(RdQueueTest, SegmentsThatDoNotAgree) {
  p.send(kB, 2, {});
  q.post_receives(1);
  talk();
  later(1ms);
  RdChannel& channel = b.links.front().channel;
  const TaggedOffset board = address_of(q.board);
  q.post_receives(1);
  const WdpData first{.wdp_class = wire::WdpClass::rd,
                      .didx = 2,
                      .sidx = 1,
                      .mlen = 32,
                      .flow_open = true,
                      .wants_response = true,
                      .opcode = Opcode::send,
                      .stride = 16,
                      .to = TaggedOffset{uint64_t{RdNode::kQKey} << 32}};
  WdpData read = first;
  read.mo = MessageOffset{16};
  read.last = true;
  read.opcode = Opcode::read_request;
  read.stag = q.rkey;
  read.to = board;
  Buffer range(8);
  wire::WdpReadRange{.length = 16}.encode(range.data());
  WdpData write = read;
  write.opcode = Opcode::write;
  WdpData longer = first;
  longer.mo = MessageOffset{16};
  longer.mlen = 6000;
  longer.last = true;
  WdpData immediate = first;
  immediate.mo = MessageOffset{16};
  immediate.last = immediate.flags.immediate = true;
  for (const auto& [second, payload] :
       {std::pair{read, range}, std::pair{write, Buffer(16)}, std::pair{longer, Buffer(16)},
        std::pair{immediate, Buffer(16)}}) {
    q.queue->take(channel, {.header = first}, Buffer(16));
    q.queue->take(channel, {.header = second}, payload);
    EXPECT_EQ(q.received.size(), 1U) << second.to_string();
  }
  EXPECT_EQ(q.host.receives.size(), 1U);
  p.send(kB, 2, pattern_bytes(10, 2));
  talk();
  EXPECT_EQ(q.received.size(), 2U);
  EXPECT_EQ(q.flushed, 0U);
}

// The end of a response to one Read must not complete another one.
TEST_F(RdQueueTest, ResponsesThatDoNotAgree) {
  for (int i = 0; i < 2; ++i) p.read(kB, 2, 64, q.rkey, address_of(q.board));
  talk([](bool from_a, const Buffer& bytes) { return !from_a || messages_in(bytes).empty(); });
  RdChannel& channel = a.links.front().channel;
  WdpData d{.wdp_class = wire::WdpClass::rd,
            .didx = 1,
            .sidx = 2,
            .mlen = 64,
            .opcode = Opcode::read_response,
            .stride = 32,
            .imm_or_read = 2};
  p.queue->take(channel, {.header = d}, Buffer(32));
  d.mo = MessageOffset{32};
  d.last = true;
  d.imm_or_read = 1;
  p.queue->take(channel, {.header = d}, Buffer(32));
  EXPECT_TRUE(p.host.sent.empty());
}

// A message of UD is none of RD, and the other way round.
TEST_F(RdQueueTest, TypesDoNotMix) {
  RdNode::Pair& ud = a.add_pair(5);
  ud.send(kB, 2, pattern_bytes(10, 1));
  q.post_receives(1);
  talk();
  EXPECT_TRUE(q.received.empty());
  RdNode::Pair& other = b.add_pair(6);
  other.post_receives(1);
  p.send(kB, 6, pattern_bytes(10, 1));
  talk();
  EXPECT_TRUE(other.received.empty());
  expect_all(p, Status::remote_invalid_rd_request);
}

}  // namespace
}  // namespace weft::wdp
