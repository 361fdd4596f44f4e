// The rules of spec/rdmap 2 to 4 for messages that are in order: what is placed, when it is
// delivered, what it counts.

#include "tests/conformance/peer.h"

namespace weft::conformance {
namespace {

using test::delivered;
using test::names;
using work::Operation;
using work::Status;

wire::ReadRequest reading(const Peer& p, uint32_t size, uint64_t offset = 0) {
  return {.sink_stag = Stag{5},
          .size = size,
          .source_stag = p.open,
          .source_to = TaggedOffset{p.to + offset}};
}

// --- 4.5

TEST(Rules, MessagesOfNoBytesAreOneSegment) {
  Peer p;
  p.hears(untagged({}));
  ASSERT_EQ(p.host.received.size(), 1U);
  EXPECT_EQ(p.host.received[0].arrival.length, 0U);
}

// RFC 5041 section 5.2, spec/rdmap 2.4: a Write of no bytes never checks its STag.
TEST(Rules, AnEmptyWriteChecksNothing) {
  for (const bool extension : {true, false}) {
    Peer p(extension);
    p.hears({tagged({.stag = Stag{0}}), tagged({.stag = Peer::kUnknown, .to = UINT64_MAX}),
             tagged({.stag = p.foreign}), tagged({.stag = p.read_only, .to = p.to})});
    EXPECT_FALSE(p.host.end);
  }
}

TEST(Rules, SegmentsOfAWriteStandForThemselves) {
  // RFC 5041 section 7.1: each is checked and placed by its own STag and TO.
  Peer p(false);
  p.hears({tagged({.stag = p.open, .to = p.to + 100, .last = false}, pattern_bytes(50, 3)),
           tagged({.stag = p.write_only, .to = p.to + 150}, pattern_bytes(50, 4))});
  EXPECT_FALSE(p.host.end);
  EXPECT_EQ((Buffer{p.memory().begin() + 100, p.memory().begin() + 150}), pattern_bytes(50, 3));
  EXPECT_EQ((Buffer{p.memory().begin() + 150, p.memory().begin() + 200}), pattern_bytes(50, 4));
}

// --- 4.6

TEST(Rules, AReadChecksItsSourceOnly) {
  Peer p;
  auto r = reading(p, 8);
  r.sink_stag = Stag{0};
  r.sink_to = TaggedOffset{UINT64_MAX};
  p.hears(test::read_request(1, r));
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "RDMA Read Response") << "the sink is the requester's business";
  EXPECT_EQ(frames[0].to, UINT64_MAX);
}

TEST(Rules, AReadOfNoBytesAnswersWithAnEmptySegment) {
  Peer p;
  p.hears(test::read_request(
      1, {.sink_stag = Stag{5}, .sink_to = TaggedOffset{77}, .source_stag = Peer::kUnknown}));
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "RDMA Read Response");
  EXPECT_EQ(frames[0].stag, Stag{5});
  EXPECT_EQ(frames[0].to, 77U);
  EXPECT_TRUE(frames[0].control.last && frames[0].payload.empty());
}

// --- 4.7

TEST(Rules, AnImmediateTakesAReceiveAndNoBytesOfIt) {
  Peer p;
  const Buffer before = p.inbox();
  p.hears(
      {tagged({.stag = p.open, .to = p.to}, pattern_bytes(30, 3)), test::immediate(1, 0x0a0b0c0d)});
  ASSERT_EQ(p.host.received.size(), 1U);
  const auto& a = p.host.received[0].arrival;
  EXPECT_TRUE(a.write_with_immediate && a.has_immediate && !a.solicited);
  EXPECT_EQ(a.length, 30U);
  EXPECT_EQ(a.immediate, 0x0a0b0c0dU);
  EXPECT_EQ(p.inbox(), before);
}

TEST(Rules, SolicitedKinds) {
  struct Row {
    Opcode op;
    bool solicited;
    bool immediate;
  };
  constexpr Row kRows[] = {{Opcode::send, false, false},     {Opcode::send_se, true, false},
                           {Opcode::immediate, false, true}, {Opcode::immediate_se, true, true},
                           {Opcode::send_imm, false, true},  {Opcode::send_se_imm, true, true}};
  for (const Row& row : kRows) {
    Peer p;
    p.hears(untagged({.op = row.op, .word = 0x01020304}, Buffer(8)));
    ASSERT_EQ(p.host.received.size(), 1U);
    EXPECT_EQ(p.host.received[0].arrival.solicited, row.solicited) << wire::to_string(row.op);
    EXPECT_EQ(p.host.received[0].arrival.has_immediate, row.immediate) << wire::to_string(row.op);
  }
}

TEST(Rules, ASendWithImmediateCarriesItInTheHeader) {
  Peer p;
  p.hears(untagged({.op = Opcode::send_imm, .word = 0x01020304}, pattern_bytes(20, 3)));
  EXPECT_EQ(p.host.received.at(0).arrival.immediate, 0x01020304U);
  EXPECT_EQ(p.host.received.at(0).arrival.length, 20U);
  EXPECT_FALSE(p.host.received.at(0).arrival.write_with_immediate);
}

// --- 4.9

// The responder MUST NOT read before all earlier messages are placed.
TEST(Rules, AReadSeesTheWritesBeforeIt) {
  Peer p;
  const Buffer fresh = pattern_bytes(64, 7);
  p.hears(
      {tagged({.stag = p.open, .to = p.to + 8}, fresh), test::read_request(1, reading(p, 64, 8))});
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "RDMA Read Response");
  EXPECT_EQ(frames[0].payload, fresh);
}

TEST(Rules, AtomicsSeeTheWritesBeforeThem) {
  Peer p;
  const uint64_t at = p.to + (8 - p.to % 8) % 8;
  Buffer word(8);
  const uint64_t value = 41;
  std::memcpy(word.data(), &value, 8);
  p.hears({tagged({.stag = p.open, .to = at}, word),
           test::atomic_request(1, {.stag = p.open, .to = TaggedOffset{at}, .add_swap = 1}),
           test::atomic_request(2, {.stag = p.open, .to = TaggedOffset{at}, .add_swap = 1})});
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "Atomic Response, Atomic Response");
  EXPECT_EQ(wire::AtomicResponse::parse(frames[0].payload.data()).original, 41U);
  EXPECT_EQ(wire::AtomicResponse::parse(frames[1].payload.data()).original, 42U);
}

// Behind a message that waits, Writes are placed and nothing else happens.
TEST(Rules, NothingOvertakesAMessageThatWaits) {
  Peer p;
  const uint64_t at = p.to + (8 - p.to % 8) % 8;
  p.hears({untagged({.msn = 1}), untagged({.msn = 2}, pattern_bytes(4, 1)), test::immediate(3, 9),
           test::atomic_request(1, {.stag = p.open, .to = TaggedOffset{at}, .add_swap = 1}),
           test::read_request(2, reading(p, 8)),
           untagged({.op = Opcode::send_inv, .msn = 4, .word = p.foreign.value()}),
           tagged({.stag = p.open, .to = p.to + 1000}, pattern_bytes(10, 5))});
  EXPECT_EQ(p.host.received.size(), 1U);
  EXPECT_EQ((Buffer{p.memory().begin() + 1000, p.memory().begin() + 1010}), pattern_bytes(10, 5));
  const auto report = p.says();
  ASSERT_EQ(names(report), "Delivered");
  EXPECT_EQ(report[0].to, 1U);
  Buffer box(10);
  p.post_receive(11, {test::segment(p.host, box)});
  EXPECT_EQ(p.host.received.size(), 2U);
  EXPECT_EQ(names(p.says()), "Delivered") << "the Immediate waits now";
  p.post_receive(12, {});
  EXPECT_EQ(p.host.received.size(), 3U);
  EXPECT_TRUE(p.host.received[2].arrival.write_with_immediate);
  const auto answers = p.says();
  ASSERT_EQ(names(answers), "Delivered, Atomic Response, RDMA Read Response");
  EXPECT_EQ(answers[0].to, 5U) << "two Sends, the Immediate, the Atomic, the Read";
  EXPECT_EQ(answers[0].stag, Stag{0x10c}) << "and the last Send waits";
}

TEST(Rules, ReceivesAreTakenInTheOrderOfTheMessages) {
  Peer p;
  Buffer boxes(30);
  for (uint64_t i = 2; i <= 4; ++i) {
    p.host.post_receive(i, {test::segment(p.host, boxes)});
  }
  p.hears({untagged({.msn = 1}, pattern_bytes(1, 1)), test::immediate(2, 1),
           untagged({.msn = 3}, pattern_bytes(2, 1)), test::immediate(4, 1)});
  ASSERT_EQ(p.host.received.size(), 4U);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(p.host.received[i].wr_id, i + 1);
}

// A Write with immediate is complete only when both are there.
TEST(Rules, InvalidationTakesEffectWithTheMessage) {
  Peer p;
  const Stag victim = p.open;
  p.hears(untagged({.op = Opcode::send_inv, .last = false, .word = victim.value()},
                   pattern_bytes(8, 1)));
  EXPECT_TRUE(p.host.invalidated.empty()) << "only after the whole Send";
  p.hears(untagged({.op = Opcode::send_inv, .mo = 8, .word = victim.value()}, pattern_bytes(8, 1)));
  EXPECT_EQ(p.host.invalidated, std::vector{victim});
  p.hears(tagged({.stag = victim, .to = p.to}, pattern_bytes(4, 1)));
  EXPECT_EQ(p.host.end->error, term::kTaggedInvalidStag);
}

// --- 4.10

TEST(Rules, EveryRequestMessageCountsOnce) {
  Peer p;
  for (uint64_t i = 0; i < 4; ++i) p.host.post_receive(i, {});
  p.hears(
      {tagged({.stag = Stag{1}}),  // 1: an RTR looks like this
       tagged({.stag = p.open, .to = p.to, .last = false}, pattern_bytes(4, 1)),  // 2, first half
       tagged({.stag = p.open, .to = p.to + 4}, pattern_bytes(4, 1)),             // 2
       test::immediate(1, 5),                                                     // 3
       untagged({.msn = 2, .last = false}),                                       // 4, first half
       untagged({.msn = 2}),                                                      // 4
       test::read_request(1, {}),                                                 // 5
       test::atomic_request(2,
                            {.stag = p.open, .to = TaggedOffset{p.to + (8 - p.to % 8) % 8}}),  // 6
       tagged({.stag = Stag{1}, .ack_wanted = true})});                                        // 7
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "Delivered, RDMA Read Response, Atomic Response");
  EXPECT_EQ(frames[0].to, 7U);
}

// Answers and reports are no requests.
TEST(Rules, AnswersAndReportsDoNotCount) {
  Peer p;
  Buffer sink(8);
  p.host.post({.operation = Operation::read, .signaled = true}, {test::segment(p.host, sink)});
  const auto request = wire::ReadRequest::parse(p.says().at(0).payload.data());
  p.hears({tagged({.op = Opcode::read_response, .stag = request.sink_stag}, pattern_bytes(8, 1)),
           delivered(1), tagged({.stag = Stag{1}, .ack_wanted = true})});
  EXPECT_EQ(p.says().at(0).to, 1U);
}

TEST(Rules, AwOnAnyKindOfRequestAsks) {
  const auto asks = [](const std::function<Buffer(Peer&)>& make) {
    Peer p;
    Buffer u = make(p);
    u[1] |= std::byte{0x10};
    p.hears(u);
    const auto frames = p.says();
    return !frames.empty() && frames[0].op() == Opcode::delivered && frames[0].to == 1;
  };
  EXPECT_TRUE(asks([](Peer&) { return tagged({.stag = Stag{1}}); }));
  EXPECT_TRUE(asks([](Peer&) { return untagged({}); }));
  EXPECT_TRUE(asks([](Peer&) { return test::immediate(1, 2); }));
  EXPECT_TRUE(asks([](Peer&) { return test::read_request(1, {}); }));
  EXPECT_TRUE(asks([](Peer& p) {
    return test::atomic_request(1, {.stag = p.open, .to = TaggedOffset{p.to + (8 - p.to % 8) % 8}});
  }));
}

TEST(Rules, CompletionsFollowTheReportsOfThePeer) {
  Peer p;
  Buffer data(16);
  for (uint64_t i = 1; i <= 3; ++i) {
    p.host.post({.wr_id = i, .operation = Operation::send, .signaled = true},
                {test::segment(p.host, data)});
  }
  p.says();
  p.hears(delivered(1));
  EXPECT_EQ(p.host.sent.size(), 1U);
  p.hears({delivered(2), delivered(1)});
  EXPECT_EQ(p.host.sent.size(), 2U) << "an older one changes nothing";
  p.hears(delivered(3));
  EXPECT_EQ(p.host.sent.size(), 3U);
}

TEST(Rules, AReportBeyondWhatWasSentIsCatastrophic) {
  Peer p;
  const Buffer u = delivered(1);
  p.hears(u);
  expect_terminate(p, term::kOperationCatastrophicStream, Quoted::ddp, u);
}

// "Message TO+1 waits": there must be one.
TEST(Rules, AReportThatAMessageWaitsWhereNoneIsOnTheWay) {
  rdmap::StreamConfig c = test::script_config();
  c.rnr_retry = 0;
  test::ScriptPeer p(c);
  p.hears(delivered(0, 0x101));
  p.later(std::chrono::seconds{100});
  EXPECT_FALSE(p.host.end);
}

}  // namespace
}  // namespace weft::conformance
