#include "wdp/sent_log.h"

#include <gtest/gtest.h>

#include <cstring>

namespace weft::wdp {
namespace {

struct SentLogTest : ::testing::Test {
  void append(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) log.append(100, 1, requests++);
  }
  void send(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) log.transmitted(log.next_waiting().csn, now);
  }
  wire::WdpAck ack(uint32_t cum, std::initializer_list<uint32_t> held = {}) {
    wire::WdpAck a;
    a.cum = Csn{cum};
    for (const uint32_t csn : held) a.hold(Csn{csn});
    return a;
  }
  SentLog::Outcome hear(const wire::WdpAck& a) {
    return log.acknowledge(a, Duration{50us}, now,
                           [&](const SentDatagram& d) { gone.push_back(d.request); });
  }
  void look() {
    log.find_lost(rtt, now, [&](const SentDatagram& d) { lost.push_back(d.request); });
  }
  // Nothing is said for long; then the oldest goes again, as a probe, and what `a` says comes.
  void probe_and_hear(wire::WdpAck a, uint32_t trigger) {
    now = now + 20ms;
    log.transmitted(log.oldest().csn, now);
    now = now + 1ms;
    a.trigger = Csn{trigger};
    hear(a);
    look();
  }
  SentLogTest() { rtt.sample(1ms, 0us); }

  SentLog log{Csn{0}};
  RoundTrip rtt;
  Time now = Time::from_ns(1'000'000'000);
  uint64_t requests = 0;
  std::vector<uint64_t> gone;
  std::vector<uint64_t> lost;
};

constexpr size_t kWeight = 100 + kDatagramOverhead;

TEST_F(SentLogTest, WhatIsAcknowledgedGoes) {
  append(4);
  EXPECT_EQ(log.stored_bytes(), 4 * kWeight);
  EXPECT_EQ(log.in_flight(), 0U);
  send(3);
  EXPECT_EQ(log.in_flight(), 3 * kWeight);
  EXPECT_EQ(log.outstanding(), 3 * kWeight);
  const auto outcome = hear(ack(2));
  EXPECT_EQ(outcome.acknowledged, 2U);
  EXPECT_EQ(gone, (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(log.in_flight(), kWeight);
  EXPECT_EQ(log.outstanding(), kWeight);
  EXPECT_EQ(log.stored_bytes(), 2 * kWeight);
  EXPECT_EQ(log.next_waiting().csn, Csn{3});
}

// A channel that is idle has no memory for what it might send.
TEST_F(SentLogTest, AtRestItHasNone) {
  EXPECT_FALSE(log.may_rest());
  append(9);
  send(9);
  hear(ack(8));
  EXPECT_FALSE(log.may_rest()) << "one is under way";
  hear(ack(9));
  EXPECT_TRUE(log.may_rest());
  log.rest();
  EXPECT_FALSE(log.may_rest());
  append(5);
  send(5);
  hear(ack(11));
  EXPECT_EQ(gone, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(log.end(), Csn{14});
}

TEST_F(SentLogTest, SelectivelyToo) {
  append(5);
  send(5);
  hear(ack(1, {2, 4}));
  EXPECT_EQ(gone, (std::vector<uint64_t>{0, 2, 4}));
  EXPECT_EQ(log.in_flight(), 2 * kWeight);
  EXPECT_EQ(log.outstanding(), 4 * kWeight) << "a receiver keeps what is behind a gap";
  hear(ack(1, {2, 4}));
  EXPECT_EQ(gone.size(), 3U) << "said twice counts once";
  hear(ack(0));
  EXPECT_EQ(gone.size(), 3U) << "an old one that comes late takes nothing back";
}

// spec/wdp-rd 5.1: a peer cannot have what was never sent.
TEST_F(SentLogTest, TheImpossible) {
  append(3);
  send(2);
  EXPECT_TRUE(hear(ack(3)).impossible);
  EXPECT_TRUE(hear(ack(0, {2})).impossible);
  EXPECT_FALSE(hear(ack(2)).impossible);
}

// RFC 9002 6.1.2: lost, if a later one has come and it was sent long enough ago.
TEST_F(SentLogTest, LostByTime) {
  append(3);
  send(3);
  now = now + 1ms;
  hear(ack(0, {1}));
  look();
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(log.loss_time(), now + 250us);  // 5/4 of the round trip after it was sent
  now = log.loss_time();
  look();
  EXPECT_EQ(lost, (std::vector<uint64_t>{0})) << "not the one that was sent later";
  EXPECT_EQ(log.in_flight(), kWeight);
  ASSERT_TRUE(log.has_lost());
  EXPECT_EQ(log.next_lost().csn, Csn{0});
  log.transmitted(Csn{0}, now);
  EXPECT_FALSE(log.has_lost());
  EXPECT_TRUE(log.oldest().datagram->repeated);
  EXPECT_EQ(log.in_flight(), 2 * kWeight);
}

// RFC 9002 6.1.1, with two trains instead of three packets.
TEST_F(SentLogTest, LostByOrder) {
  append(200);
  send(200);
  wire::WdpAck a = ack(0);
  for (uint32_t i = 1; i < 128; ++i) a.hold(Csn{i});
  hear(a);
  look();
  EXPECT_TRUE(lost.empty()) << "a train may overtake one";
  a.hold(Csn{128});
  hear(a);
  look();
  EXPECT_EQ(lost, (std::vector<uint64_t>{0}));
}

// One that was sent again is not lost because of what was sent before that.
TEST_F(SentLogTest, TheOrderOfTransmissionsCounts) {
  append(3);
  send(3);
  now = now + 1ms;
  hear(ack(0, {1}));
  now = now + 1ms;
  look();
  log.transmitted(log.next_lost().csn, now);
  lost.clear();
  now = now + 10ms;
  hear(ack(0, {1, 2}));
  look();
  EXPECT_TRUE(lost.empty()) << "2 was sent before it";
  append(1);
  send(1);
  now = now + 1ms;
  hear(ack(0, {1, 2, 3}));
  look();
  EXPECT_EQ(lost, (std::vector<uint64_t>{0})) << "3 was sent after it";
}

// Karn: what was sent twice tells no round trip; nor that its second copy came, if that has hardly
// left (RFC 8985 6.2 step 2).
// An RDACK has 1024 bits. What lies beyond has perhaps come, and nobody has said so yet.
TEST_F(SentLogTest, WhatNoAcknowledgementCanSpeakOfIsNotLost) {
  constexpr uint32_t kReach = 32 * wire::WdpAck::kMaxWords;
  append(kReach + 300);
  send(kReach + 300);
  const auto all_but = [&](uint32_t cum) {
    wire::WdpAck a;
    a.cum = Csn{cum};
    for (uint32_t i = 1; i <= kReach; ++i) a.hold(Csn{cum + i});
    return a;
  };
  now = now + 1ms;
  hear(all_but(0));
  look();
  ASSERT_EQ(lost, std::vector<uint64_t>{0});
  // Two holes, of which the first is closed: 1 is the next one.
  log.transmitted(log.next_lost().csn, now);
  now = now + 10ms;
  lost.clear();
  hear(all_but(1));
  look();
  EXPECT_EQ(lost, std::vector<uint64_t>{});
  // It is what was sent last of all, and has come; so have 1025 and those behind it, by now.
  hear(ack(kReach + 300));
  look();
  EXPECT_EQ(lost, std::vector<uint64_t>{});
}

TEST_F(SentLogTest, CopiesTellNothing) {
  append(2);
  send(2);
  now = now + 2ms;
  log.transmitted(Csn{0}, now);
  now = now + 10us;
  const auto outcome = hear(ack(1));
  EXPECT_EQ(outcome.acknowledged, 1U);
  EXPECT_FALSE(outcome.newest_sent);
  now = now + 2ms;
  look();
  EXPECT_TRUE(lost.empty()) << "1 was sent before the copy, but it is the first that came";
}

// A peer that stood still is probed, and then reads what was there before the probe's copy.
TEST_F(SentLogTest, ACopyIsNotTheNewestWhereSomethingElseCameLast) {
  append(8);
  send(8);
  probe_and_hear(ack(4), 3);
  EXPECT_EQ(gone.size(), 4U);
  EXPECT_TRUE(lost.empty()) << "4 to 7 wait to be read";
  wire::WdpAck some = ack(8);
  some.trigger = Csn{7};
  hear(some);
  look();
  EXPECT_TRUE(lost.empty());
}

// What came last is that copy: all that was sent before it has come, or is lost.
TEST_F(SentLogTest, ACopyThatCameLastIsTheNewest) {
  append(4);
  send(4);
  probe_and_hear(ack(1), 0);
  EXPECT_EQ(gone.size(), 1U);
  EXPECT_EQ(lost, (std::vector<uint64_t>{1, 2, 3}));
  // The same of those that SACK names.
  lost.clear();
  log.transmitted(log.next_lost().csn, now);
  log.transmitted(log.next_lost().csn, now);
  now = now + 2ms;
  wire::WdpAck some = ack(1, {2});
  some.trigger = Csn{2};
  hear(some);
  look();
  EXPECT_EQ(lost, (std::vector<uint64_t>{1})) << "2 was sent after it";
}

TEST_F(SentLogTest, TheNewestTellsTheRoundTrip) {
  append(2);
  send(1);
  const Time first = now;
  now = now + 1ms;
  send(1);
  const Time second = now;
  now = now + 1ms;
  EXPECT_EQ(hear(ack(2)).newest_sent, second);
  EXPECT_NE(first, second);
}

TEST_F(SentLogTest, TakenBack) {
  append(2);
  log.take_back();
  EXPECT_EQ(log.end(), Csn{1});
  EXPECT_EQ(log.stored_bytes(), kWeight);
}

TEST_F(SentLogTest, AbandonedIsToldToAll) {
  append(4);
  send(3);
  hear(ack(0, {1}));
  gone.clear();
  log.abandon([&](const SentDatagram& d) { gone.push_back(d.request); });
  EXPECT_EQ(gone, (std::vector<uint64_t>{0, 2, 3}));
  EXPECT_EQ(log.stored(), 0U);
  EXPECT_EQ(log.in_flight() + log.outstanding() + log.stored_bytes(), 0U);
}

// The peer may have a datagram, of which another copy was sent before, while the train with this
// one waits for the socket.
TEST_F(SentLogTest, BytesThatATrainRefersToStayUntilItIsGone) {
  constexpr size_t kLarge = 20'000;
  SentDatagram& d = log.append(kLarge, 0, 0);
  std::byte* const bytes = d.bytes.get();
  std::memset(bytes, 7, kLarge);
  send(1);
  log.lend(d);
  EXPECT_EQ(hear(ack(1)).acknowledged, 1U);
  EXPECT_EQ(log.stored(), 0U);
  EXPECT_NE(log.append(kLarge, 0, 1).bytes.get(), bytes) << "they are somebody's yet";
  EXPECT_EQ(bytes[kLarge - 1], std::byte{7});
  log.train_gone();
  EXPECT_EQ(log.append(kLarge, 0, 2).bytes.get(), bytes) << "and serve again";
}

TEST_F(SentLogTest, AnEndLeavesATrainItsBytes) {
  SentDatagram& d = log.append(20'000, 0, 0);
  const std::byte* const bytes = d.bytes.get();
  std::memset(d.bytes.get(), 7, 20'000);
  send(1);
  log.lend(d);
  log.abandon([](const SentDatagram&) {});
  EXPECT_EQ(bytes[19'999], std::byte{7}) << "AddressSanitizer would say that they are freed";
  log.train_gone();
}

TEST_F(SentLogTest, ASmallerBufferServesNoLargerDatagram) {
  (void)log.append(5000, 0, 0);
  log.take_back();
  EXPECT_GE(log.append(5001, 0, 0).room, 5001U);
}

}  // namespace
}  // namespace weft::wdp
