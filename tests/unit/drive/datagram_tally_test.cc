#include "drive/datagram_tally.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/append.h"
#include "tests/support/rd_node.h"
#include "tests/support/uc_pair.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using stats::Kind;
using wire::WdpDrop;
using work::Operation;

struct DatagramTallyTest : ::testing::Test {
  // Both are large.
  std::unique_ptr<stats::QpCounters> qp = std::make_unique<stats::QpCounters>();
  std::unique_ptr<stats::EngineCounters> engine = std::make_unique<stats::EngineCounters>();

  uint64_t dropped(WdpDrop why) const {
    return engine->datagram_dropped[static_cast<size_t>(why)].value();
  }
};

struct UcTallyTest : DatagramTallyTest {
  // Messages of ten datagrams each, with more of them than receives. Carries all the time, as a
  // link does that is visited again and again.
  void run(const char* faults, bool often = true) {
    test::UcPair p{{.seed = 3, .link = {.faults = *FaultSpec::parse(faults)}}};
    std::vector<std::byte> from(14'240);
    std::vector<std::byte> to(from.size());
    for (uint64_t i = 0; i < 60; ++i) p.b.post_receive(i, {segment(p.b.host(), to)});
    const Stag stag = p.b.host().add_region(to);
    for (int i = 0; i < 100; ++i) {
      const bool write = i % 3 == 0;
      p.a.host().post({.operation = write ? Operation::write_immediate : Operation::send,
                       .remote_stag = stag,
                       .remote_to = test::address_of(to)},
                      {segment(p.a.host(), from)});
      if (!often) continue;
      p.drive(100us);
      publish(p.b);
    }
    p.drive();
    p.a.close();
    p.drive();
    publish(p.b);
    expected = p.b.counters();
    lost = p.b.session.lost();
    sent = p.a.counters().datagrams_sent;
  }
  void publish(const test::UcSide& side) {
    tally.publish(side.session, *qp, *engine);
    most_lost = std::max(most_lost, qp->datagrams_lost.value());
    EXPECT_EQ(qp->datagrams_lost.value(), side.session.lost());
  }

  UcTally tally;
  wdp::UcCounters expected;
  uint64_t lost = 0;
  uint64_t most_lost = 0;
  uint64_t sent = 0;
};

TEST_F(UcTallyTest, CarriesEachThingOnce) {
  run("loss:0.02,duplicate:0.05,reorder:0.1,reorder_delay:300us");
  EXPECT_EQ(qp->fpdus_received.value(), expected.datagrams_received);
  EXPECT_EQ(qp->fpdus_sent.value(), expected.datagrams_sent);
  EXPECT_EQ(qp->bytes_received[static_cast<size_t>(Kind::write)].value(),
            expected.write_bytes_placed);
  EXPECT_EQ(qp->datagrams_reordered.value(), expected.reordered);
  EXPECT_EQ(qp->datagrams_late.value(), expected.late);
  EXPECT_EQ(qp->datagrams_duplicate.value(), expected.drops.of(WdpDrop::duplicate));
  EXPECT_EQ(qp->messages_incomplete.value(), expected.messages_incomplete);
  EXPECT_EQ(qp->messages_unreceived.value(), expected.messages_without_receive);
  EXPECT_EQ(engine->datagrams_held.value(), expected.held);
  for (size_t i = 0; i < wire::kWdpDropCount; ++i) {
    const auto why = static_cast<WdpDrop>(i);
    EXPECT_EQ(dropped(why), expected.drops.of(why)) << wire::to_string(why);
  }
  for (const stats::Cell* c : {&qp->datagrams_lost, &qp->datagrams_reordered, &qp->datagrams_late,
                               &qp->datagrams_duplicate, &qp->messages_incomplete,
                               &qp->messages_unreceived, &engine->datagrams_held}) {
    EXPECT_GT(c->value(), 0U) << "the run has shown nothing of it";
  }
}

TEST_F(UcTallyTest, EachDatagramOfThePeerCameOrIsLost) {
  run("loss:0.05,duplicate:0.05,reorder:0.1");
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(
      qp->fpdus_received.value() - qp->datagrams_duplicate.value() + qp->datagrams_lost.value(),
      sent);
}

TEST_F(UcTallyTest, WhatWasOnlyLateIsTakenOffAgain) {
  run("reorder:0.2,reorder_delay:400us");
  EXPECT_GT(most_lost, 0U);
  EXPECT_EQ(qp->datagrams_lost.value(), 0U);
}

TEST_F(UcTallyTest, OneLookAtTheEndSeesTheSame) {
  run("loss:0.02,duplicate:0.05", false);
  EXPECT_EQ(qp->fpdus_received.value(), expected.datagrams_received);
  EXPECT_EQ(qp->datagrams_lost.value(), lost);
  EXPECT_EQ(qp->datagrams_duplicate.value(), dropped(WdpDrop::duplicate));
}

TEST_F(DatagramTallyTest, OfUdCarriesMessagesAndThoseWithoutAReceive) {
  UdTally tally;
  wdp::UdCounters now;
  now.messages_sent = 5;
  now.messages_received = 7;
  now.drops.count(WdpDrop::no_receive);
  now.drops.count(WdpDrop::wrong_q_key);
  tally.publish(now, *qp, *engine);
  tally.publish(now, *qp, *engine);
  now.messages_received = 8;
  now.drops.count(WdpDrop::no_receive);
  tally.publish(now, *qp, *engine);
  EXPECT_EQ(qp->fpdus_sent.value(), 5U);
  EXPECT_EQ(qp->fpdus_received.value(), 8U);
  EXPECT_EQ(qp->messages_unreceived.value(), 2U);
  EXPECT_EQ(dropped(WdpDrop::no_receive), 2U);
  EXPECT_EQ(dropped(WdpDrop::wrong_q_key), 1U);
}

// Of an RD queue pair: what it has refused, and why it dropped what it did.
TEST_F(DatagramTallyTest, OfAnRdQueuePair) {
  test::RdNode a{1, 1, Time::from_ns(1)};
  test::RdNode b{2, 2, Time::from_ns(1)};
  test::RdNode::Member& p = a.add_member(1);
  const test::RdNode::Member& q = b.add_member(1);
  const auto talk = [&] {
    for (int round = 0; round < 20; ++round) {
      for (const auto& d : a.said(Time::from_ns(1))) b.hear(d.bytes, a.address, Time::from_ns(1));
      for (const auto& d : b.said(Time::from_ns(1))) a.hear(d.bytes, b.address, Time::from_ns(1));
    }
  };
  p.q_key = QKey{5};
  p.send(2, 1, test::Buffer(10));
  talk();
  p.q_key = QKey{test::RdNode::kQKey};
  p.send(2, 1, test::Buffer(10));
  talk();
  RdQueueTally tally;
  tally.publish(q.queue->responder(), *qp, *engine);
  tally.publish(q.queue->responder(), *qp, *engine);
  EXPECT_EQ(qp->messages_unreceived.value(), 1U);
  EXPECT_EQ(dropped(WdpDrop::wrong_q_key), 1U);
}

TEST_F(DatagramTallyTest, OfTwoSocketsAddsUpInTheEngine) {
  DropTally one;
  DropTally two;
  wdp::DropCounts drops;
  drops.count(WdpDrop::unknown_token);
  one.publish(drops, *engine);
  two.publish(drops, *engine);
  two.publish(drops, *engine);
  EXPECT_EQ(dropped(WdpDrop::unknown_token), 2U);
}

// --- handshakes

struct HandshakeTallyTest : DatagramTallyTest {
  // A call that was made here, and the REJ of its peer, if it says one.
  struct Call {
    Call() {
      handshake.connect({.own_qpn = make_qpn(50000, 9), .token = SessionToken{7}, .ird = 4},
                        {.to = {Gid::from_ipv4(0x7f000001), 4791}, .from = {}}, Qpn{}, false, now);
      wdp::Train train;
      handshake.fill(train);
      std::vector<std::byte> sent;
      test::append(sent, train.pieces());
      answer = *wire::WdpCtl::parse(sent);
      answer.private_data = answer.tlvs = {};
      answer.source_token = {};
    }
    void hears(wire::CtlType type, uint32_t reason = 0) {
      answer.type = type;
      answer.reason = reason;
      (void)handshake.received(answer, 64, now);
    }
    Time now = Time{} + 1s;
    SystemRandom random;
    wdp::Handshake handshake{random};
    wire::WdpCtl answer;
  };
  // As a link does, again and again.
  void publish(const Call& call) {
    HandshakeTally tally;
    for (int i = 0; i < 3; ++i) tally.publish(call.handshake, *engine);
  }
  uint64_t rejected() const { return sum(engine->wdp_rejected); }
  uint64_t failed() const { return sum(engine->wdp_call_failed); }
  uint64_t failed(stats::CallEnd why) const {
    return engine->wdp_call_failed[static_cast<size_t>(why)].value();
  }
  template <size_t N>
  static uint64_t sum(const std::array<stats::Cell, N>& family) {
    uint64_t n = 0;
    for (const stats::Cell& c : family) n += c.value();
    return n;
  }
};

TEST_F(HandshakeTallyTest, EachReasonOfThePeerCountsOnce) {
  for (uint32_t reason = 1; reason <= wire::kRejReasons; ++reason) {
    Call call;
    publish(call);
    EXPECT_EQ(failed(), reason - 1) << "it is under way";
    call.hears(wire::CtlType::rej, reason);
    publish(call);
    EXPECT_EQ(engine->wdp_call_failed[reason - 1].value(), 1U) << reason;
    EXPECT_EQ(failed(), reason);
  }
  for (const uint32_t none : {0U, 11U, ~0U}) {
    Call call;
    call.hears(wire::CtlType::rej, none);
    publish(call);
  }
  EXPECT_EQ(failed(stats::CallEnd::other_reason), 3U);
  EXPECT_EQ(failed(), wire::kRejReasons + 3);
  EXPECT_EQ(rejected(), 0U) << "nothing was rejected here";
}

TEST_F(HandshakeTallyTest, CallsWithoutAnAnswerAndWithABadOne) {
  Call silent;
  silent.handshake.tick(silent.now + 60s);
  publish(silent);
  EXPECT_EQ(failed(stats::CallEnd::timed_out), 1U);
  Call bad;
  bad.answer.source_token = SessionToken{9};
  bad.answer.max_payload = 1;
  bad.hears(wire::CtlType::rep);
  publish(bad);
  EXPECT_EQ(failed(stats::CallEnd::bad_answer), 1U);
  EXPECT_EQ(failed(), 2U);
  // It told the peer so.
  EXPECT_EQ(engine->wdp_rejected[static_cast<size_t>(wire::RejReason::bad_parameters) - 1].value(),
            1U);
  EXPECT_EQ(rejected(), 1U);
}

TEST_F(HandshakeTallyTest, ACallThatIsWithdrawnDidNotFail) {
  Call call;
  call.handshake.withdraw();
  publish(call);
  EXPECT_EQ(failed() + rejected(), 0U);
}

// Who was called and gives up has failed nobody's call here.
TEST_F(HandshakeTallyTest, AnAnswerThatIsWithdrawnIsARejection) {
  Call call;
  wire::WdpCtl req = call.answer;
  req.type = wire::CtlType::req;
  req.source_token = SessionToken{7};
  SystemRandom random;
  wdp::Handshake called{random};
  called.requested(req, {.to = {Gid::from_ipv4(0x7f000001), 50000}, .from = {}}, 256, false);
  HandshakeTally tally;
  tally.publish(called, *engine);
  EXPECT_EQ(rejected(), 0U);
  called.withdraw();
  for (int i = 0; i < 3; ++i) tally.publish(called, *engine);
  EXPECT_EQ(engine->wdp_rejected[static_cast<size_t>(wire::RejReason::application) - 1].value(),
            1U);
  EXPECT_EQ(rejected(), 1U);
  EXPECT_EQ(failed(), 0U);
}

TEST_F(HandshakeTallyTest, WhatAPortSaidCountsOnce) {
  wdp::RejCounts said;
  RejTally tally;
  for (uint32_t reason = 1; reason <= wire::kRejReasons; ++reason) {
    said.count(static_cast<wire::RejReason>(reason));
    tally.publish(said, *engine);
    tally.publish(said, *engine);
    EXPECT_EQ(engine->wdp_rejected[reason - 1].value(), 1U) << reason;
    EXPECT_EQ(rejected(), reason);
  }
}

}  // namespace
}  // namespace weft::drive
