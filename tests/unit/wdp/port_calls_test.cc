// Queue pairs that call queue pairs (wire.md 9.1, 13).

#include "tests/unit/wdp/port_fixture.h"

namespace weft::wdp {
namespace {

struct CallTest : PortTest {
  CallTest() {
    one = &a.add_peer();
    two = &b.add_peer();
    a.callee = {&one->connection, offer_of_a()};
    a.callee_expects = make_qpn(kB.port, 5);
    b.callee = {&two->connection, offer_of_b()};
    b.callee.offer.own_qpn = make_qpn(kB.port, 5);
    b.callee_expects = make_qpn(kA.port, 9);
  }
  void a_calls() {
    a.port.connect(one->connection, a.callee.offer, {.to = kB}, make_qpn(kB.port, 5), true, now);
  }
  void b_calls() {
    b.port.connect(two->connection, b.callee.offer, {.to = kA}, make_qpn(kA.port, 9), true, now);
  }
  void expect_open() {
    EXPECT_EQ(one->connection.state(), UcConnection::State::open);
    EXPECT_EQ(two->connection.state(), UcConnection::State::open);
    exchange(*one, *two);
    exchange(*two, *one);
  }
  WdpNode::Peer* one;
  WdpNode::Peer* two;
};

TEST_F(CallTest, OneCallsTheOther) {
  a_calls();
  talk();
  EXPECT_TRUE(b.requests.empty());
  expect_open();
}

TEST_F(CallTest, BothMayCallAtOnce) {
  a_calls();
  b_calls();
  talk();
  expect_open();
}

TEST_F(CallTest, WhoeverIsCalledFirst) {
  a_calls();
  b_calls();
  const auto from_b = b.said(now);
  ASSERT_EQ(from_b.size(), 1U);
  a.hear(from_b[0].bytes, kB, now);
  talk();
  expect_open();
}

TEST_F(CallTest, WhatIsLostIsRepeated) {
  std::vector<CtlType> lost;
  a_calls();
  // The first of each kind is lost.
  const auto lose = [&](bool, const Buffer& d) {
    const CtlType type = parse(d).type;
    if (std::count(lost.begin(), lost.end(), type) != 0) return true;
    lost.push_back(type);
    return false;
  };
  for (int i = 0; i < 20; ++i) {
    talk(lose);
    now = now + 50ms;
    a.tick(now);
    b.tick(now);
  }
  EXPECT_EQ(lost, (std::vector<CtlType>{CtlType::req, CtlType::rep, CtlType::rtu}));
  expect_open();
}

TEST_F(CallTest, AStrangersCallIsRefused) {
  b.callee_expects = make_qpn(kA.port, 10);
  a_calls();
  talk();
  EXPECT_EQ(one->connection.handshake()->peer().reason,
            static_cast<uint32_t>(RejReason::bad_parameters));
  EXPECT_EQ(two->connection.state(), UcConnection::State::setting_up);
}

}  // namespace
}  // namespace weft::wdp
