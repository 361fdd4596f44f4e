#include "rdmap/inbound_sends.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/host.h"
#include "wire/rdmap_messages.h"

namespace weft::rdmap {
namespace {

using test::Buffer;
using test::pattern_bytes;
using wire::Opcode;
using wire::Refusal;
namespace term = wire::term;

class InboundSendsTest : public ::testing::Test {
 protected:
  static ddp::Segment segment(size_t payload, bool last, Opcode opcode = Opcode::send,
                              uint32_t word = 0) {
    ddp::Segment s;
    s.control = {.last = last, .opcode = opcode};
    s.ulp_word = word;
    s.payload = static_cast<uint32_t>(payload);
    return s;
  }
  void post(uint64_t wr_id) { host.post_receive(wr_id, {test::segment(host, inbox)}); }
  // The next segment of a Send comes.
  mpa::Verdict hears(const Buffer& data, bool last, Opcode opcode = Opcode::send,
                     uint32_t word = 0) {
    const auto s = segment(data.size(), last, opcode, word);
    if (!sends.arriving()) sends.begin(opcode, true);
    if (auto v = sends.open(s); !v.ok()) return v;
    PieceList places;
    if (auto v = sends.where(0, data.size(), places); !v.ok()) return v;
    copy(data, places);
    sends.placed(s);
    return last ? sends.deliver(s) : mpa::Verdict{Ok{}};
  }
  static void copy(const Buffer& data, const PieceList& places) {
    ASSERT_EQ(places.bytes(), data.size());
    size_t done = 0;
    for (const IoVec& p : places.pieces()) {
      std::memcpy(p.iov_base, data.data() + done, p.iov_len);
      done += p.iov_len;
    }
  }
  // A Send that waited for its receive.
  EarlyArrival& waited(const Buffer& data, bool complete, Opcode opcode = Opcode::send) {
    auto& a = early.add(EarlyArrival::Kind::send, segment(data.size(), complete, opcode));
    std::copy(data.begin(), data.end(), early.extend(data.size()));
    a.complete = complete;
    return a;
  }
  void expect_failed(const mpa::Verdict& v, wire::TermError error, Refusal why,
                     work::Status status) {
    ASSERT_FALSE(v.ok());
    EXPECT_EQ(v.error(), error);
    EXPECT_EQ(v.error().why, why);
    ASSERT_EQ(host.received.size(), 1U) << "the receive at fault is complete";
    EXPECT_EQ(host.received[0].status, status);
    EXPECT_FALSE(sends.arriving());
  }
  Buffer inbox_front(size_t n) const { return {inbox.begin(), inbox.begin() + n}; }

  test::Host host;
  Buffer inbox = Buffer(60);
  InboundSends sends{host};
  EarlyArrivals early;
};

TEST_F(InboundSendsTest, SegmentsFollowEachOtherInTheReceive) {
  post(7);
  post(8);
  const Buffer data = pattern_bytes(60, 1);
  ASSERT_TRUE(hears({data.begin(), data.begin() + 25}, false).ok());
  EXPECT_TRUE(sends.arriving());
  EXPECT_FALSE(sends.early());
  EXPECT_EQ(sends.bytes_before(), 25U);
  EXPECT_TRUE(host.received.empty());
  ASSERT_TRUE(hears({data.begin() + 25, data.end()}, true).ok());
  EXPECT_FALSE(sends.arriving());
  EXPECT_EQ(inbox, data);
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].wr_id, 7U);
  EXPECT_EQ(host.received[0].status, work::Status::success);
  EXPECT_EQ(host.received[0].arrival.length, 60U);
  ASSERT_TRUE(hears(pattern_bytes(3, 2), true).ok());
  EXPECT_EQ(host.received.at(1).wr_id, 8U);
  EXPECT_EQ(host.received.at(1).arrival.length, 3U) << "each begins at 0";
}

TEST_F(InboundSendsTest, AnArrivalSaysWhatTheOpcodeDoes) {
  for (uint64_t i = 0; i < 4; ++i) post(i);
  ASSERT_TRUE(hears({}, true, Opcode::send, 5).ok());
  ASSERT_TRUE(hears({}, true, Opcode::send_se, 5).ok());
  ASSERT_TRUE(hears({}, true, Opcode::send_se_imm, 0x01020304).ok());
  Buffer other(8);
  const Stag stag = host.add_region(other);
  ASSERT_TRUE(hears({}, true, Opcode::send_inv, stag.value()).ok());
  ASSERT_EQ(host.received.size(), 4U);
  const work::Arrival& plain = host.received[0].arrival;
  EXPECT_FALSE(plain.solicited || plain.has_immediate || plain.invalidated);
  EXPECT_FALSE(plain.write_with_immediate);
  EXPECT_TRUE(host.received[1].arrival.solicited);
  EXPECT_FALSE(host.received[1].arrival.has_immediate);
  EXPECT_TRUE(host.received[2].arrival.solicited);
  EXPECT_TRUE(host.received[2].arrival.has_immediate);
  EXPECT_EQ(host.received[2].arrival.immediate, 0x01020304U);
  EXPECT_TRUE(host.received[3].arrival.invalidated);
  EXPECT_EQ(host.received[3].arrival.invalidated_stag, stag);
  EXPECT_EQ(host.invalidated, std::vector<Stag>{stag});
}

TEST_F(InboundSendsTest, WhatCannotBeInvalidatedFailsTheReceive) {
  post(1);
  const auto v = hears(pattern_bytes(4, 1), true, Opcode::send_inv, 77);
  ASSERT_FALSE(v.ok());
  EXPECT_EQ(v.error(), term::kOperationCannotInvalidate);
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].status, work::Status::flushed);
}

TEST_F(InboundSendsTest, ASendHasOneOpcode) {
  post(1);
  ASSERT_TRUE(hears(pattern_bytes(4, 1), false).ok());
  const auto v = sends.open(segment(4, true, Opcode::send_se));
  ASSERT_FALSE(v.ok());
  EXPECT_EQ(v.error(), term::kOperationUnexpectedOpcode);
  EXPECT_EQ(v.error().why, Refusal::opcode_changed);
  EXPECT_TRUE(host.received.empty());
}

TEST_F(InboundSendsTest, ASendIsNotLongerThanItsReceive) {
  post(1);
  ASSERT_TRUE(hears(pattern_bytes(40, 1), false).ok());
  expect_failed(hears(pattern_bytes(21, 1), true), term::kUntaggedTooLong,
                Refusal::receive_too_short, work::Status::local_length);
  EXPECT_FALSE(sends.own_fault());
}

TEST_F(InboundSendsTest, AReceiveWithoutItsMemoryIsOurOwnFault) {
  post(1);
  host.regions.clear();
  expect_failed(hears(pattern_bytes(4, 1), true), term::kOperationCatastrophicStream,
                Refusal::own_receive_memory, work::Status::local_protection);
  EXPECT_TRUE(sends.own_fault());
}

TEST_F(InboundSendsTest, UnreachableMemoryIsOurOwnFault) {
  post(1);
  ASSERT_TRUE(hears(pattern_bytes(4, 1), false).ok());
  expect_failed(fail(sends.unreachable()), term::kOperationCatastrophicStream,
                Refusal::own_receive_memory, work::Status::local_protection);
  EXPECT_TRUE(sends.own_fault());
}

TEST_F(InboundSendsTest, WithoutAReceiveOrBehindOthersItIsEarly) {
  sends.begin(Opcode::send, true);
  EXPECT_TRUE(sends.arriving());
  EXPECT_TRUE(sends.early());
  EXPECT_TRUE(sends.open(segment(1000, true)).ok()) << "no receive has a say";
  sends.placed(segment(1000, true));
  EXPECT_FALSE(sends.arriving());
  post(1);
  sends.begin(Opcode::send, false);
  EXPECT_TRUE(sends.early());
  EXPECT_EQ(host.receives.size(), 1U);
}

TEST_F(InboundSendsTest, AReceiveThatIsTakenComesBackOnce) {
  EXPECT_FALSE(sends.abandon());
  post(9);
  ASSERT_TRUE(hears(pattern_bytes(4, 1), false).ok());
  const auto r = sends.abandon();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->wr_id, 9U);
  EXPECT_FALSE(sends.abandon());
  sends.begin(Opcode::send, true);
  EXPECT_FALSE(sends.abandon()) << "it had none";
  EXPECT_FALSE(sends.arriving());
}

TEST_F(InboundSendsTest, TrimSparesTheReceiveInUse) {
  post(9);
  ASSERT_TRUE(hears(pattern_bytes(4, 1), false).ok());
  sends.trim();
  ASSERT_TRUE(hears(pattern_bytes(4, 2), true).ok());
  sends.trim();
  post(10);
  ASSERT_TRUE(hears(pattern_bytes(5, 3), true).ok());
  EXPECT_EQ(host.received.at(1).arrival.length, 5U);
}

TEST_F(InboundSendsTest, AWholeSendThatWaitedCompletesItsReceive) {
  post(3);
  work::Receive r;
  ASSERT_TRUE(sends.take(r));
  const Buffer data = pattern_bytes(44, 2);
  ASSERT_TRUE(sends.accept(waited(data, true, Opcode::send_se), r).ok());
  EXPECT_EQ(inbox_front(44), data);
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].wr_id, 3U);
  EXPECT_EQ(host.received[0].arrival.length, 44U);
  EXPECT_TRUE(host.received[0].arrival.solicited);
  EXPECT_FALSE(sends.take(r));
}

TEST_F(InboundSendsTest, TheRestOfASendThatWaitedGoesStraightToItsReceive) {
  const Buffer data = pattern_bytes(50, 2);
  sends.begin(Opcode::send, true);
  ASSERT_TRUE(sends.early());
  const auto first = segment(20, false);
  ASSERT_TRUE(sends.open(first).ok());
  sends.placed(first);
  post(3);
  work::Receive r;
  ASSERT_TRUE(sends.take(r));
  ASSERT_TRUE(sends.accept(waited({data.begin(), data.begin() + 20}, false), r).ok());
  EXPECT_FALSE(sends.early());
  EXPECT_TRUE(host.received.empty());
  ASSERT_TRUE(hears({data.begin() + 20, data.end()}, true).ok());
  EXPECT_EQ(inbox_front(50), data);
  EXPECT_EQ(host.received.at(0).arrival.length, 50U);
}

TEST_F(InboundSendsTest, ASendThatWaitedFitsItsReceiveToo) {
  sends.begin(Opcode::send, true);
  post(3);
  work::Receive r;
  ASSERT_TRUE(sends.take(r));
  expect_failed(sends.accept(waited(pattern_bytes(61, 1), false), r), term::kUntaggedTooLong,
                Refusal::receive_too_short, work::Status::local_length);
}

TEST_F(InboundSendsTest, ASendThatWaitedNeedsTheMemoryOfItsReceive) {
  sends.begin(Opcode::send, true);
  post(3);
  work::Receive r;
  ASSERT_TRUE(sends.take(r));
  host.regions.clear();
  expect_failed(sends.accept(waited(pattern_bytes(6, 1), false), r),
                term::kOperationCatastrophicStream, Refusal::own_receive_memory,
                work::Status::local_protection);
  EXPECT_TRUE(sends.own_fault());
}

// RFC 7306 section 6, spec/rdmap 1.6.
TEST_F(InboundSendsTest, AnImmediateTellsItsValueAndTheLengthOfTheWrite) {
  post(3);
  work::Receive r;
  ASSERT_TRUE(sends.take(r));
  Buffer payload(wire::Immediate::kSize);
  wire::Immediate{0x0a0b0c0d}.encode(payload.data());
  sends.complete_immediate(segment(payload.size(), true, Opcode::immediate_se), r, payload, 4321);
  ASSERT_EQ(host.received.size(), 1U);
  const work::Arrival& a = host.received[0].arrival;
  EXPECT_TRUE(a.write_with_immediate && a.has_immediate && a.solicited);
  EXPECT_EQ(a.immediate, 0x0a0b0c0dU);
  EXPECT_EQ(a.length, 4321U);
}

}  // namespace
}  // namespace weft::rdmap
