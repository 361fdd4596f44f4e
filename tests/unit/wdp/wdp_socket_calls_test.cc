// Queue pairs that call queue pairs (spec/wdp 4.6, spec/addressing 6.2).

#include "tests/unit/wdp/wdp_socket_fixture.h"

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
  // It comes to the connection, is dropped for this reason alone, and changes nothing.
  void expect_unwanted(WdpNode& node, UcConnection& connection, SessionToken token, CtlType type,
                       const Endpoint& from) {
    SCOPED_TRACE(wire::to_string(type));
    const auto state = connection.state();
    const uint64_t before = connection.drops().of(WdpDrop::unwanted_ctl);
    const WdpCtl c{.type = type,
                   .didx = index_of(node.callee.offer.own_qpn),
                   .sidx = 9,
                   .token = token,
                   .source_token = SessionToken{3},
                   .source = make_qpn(from.port, 9),
                   .max_payload = 1472};
    Buffer bytes(c.size());
    c.encode(bytes.data());
    EXPECT_EQ(node.hear(bytes, from, now), &connection);
    EXPECT_EQ(connection.drops().of(WdpDrop::unwanted_ctl), before + 1);
    EXPECT_EQ(connection.drops().total(), before + 1);
    EXPECT_EQ(node.port.drops().total(), 0U);
    EXPECT_EQ(connection.state(), state);
    EXPECT_TRUE(node.said(now).empty());
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

// spec/wdp 4.3: duplicate REQ repeats the last answer. The copy of a call that was refused must
// not take the place of the one that its caller has made since: nobody there knows of it any more.
TEST_F(CallTest, ALateCopyOfACallThatWasRefusedBeginsNothing) {
  b.not_ready = true;
  a_calls();
  const auto first = a.said(now);
  ASSERT_EQ(first.size(), 1U);
  b.hear(first[0].bytes, kA, now);
  talk();
  ASSERT_EQ(one->connection.state(), UcConnection::State::failed);
  EXPECT_EQ(b.port.rejections().of(RejReason::not_ready), 1U);

  b.not_ready = false;
  one = &a.add_peer();
  a_calls();
  const auto second = a.said(now);
  ASSERT_EQ(second.size(), 1U);
  b.hear(second[0].bytes, kA, now);
  const auto rep = b.said(now);
  b.callee.connection = &b.add_peer().connection;  // whoever is called now
  b.hear(first[0].bytes, kA, now);
  const auto again = b.said(now);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(parse(again[0].bytes).type, CtlType::rej);
  EXPECT_EQ(b.port.rejections().of(RejReason::not_ready), 2U);
  for (const auto& d : rep) a.hear(d.bytes, kB, now);
  for (const auto& d : again) a.hear(d.bytes, kB, now);
  talk();
  expect_open();
}

// spec/wdp 4.8, service 4: The REP ends it (no RTU, no session), so that whoever asks so need not
// show that he is where he says.
TEST_F(CallTest, AQuestionIsNoCall) {
  const auto ask = [](WdpCtl& c) {
    c.ib_style = true;
    c.service = wire::CtlService::ud_resolution;
    c.destination = make_qpn(kB.port, 5);
  };
  b.hear(request(1, 1, ask), kA, now);
  const auto said = b.said(now);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(parse(said[0].bytes).type, CtlType::rej);
  EXPECT_EQ(parse(said[0].bytes).reason, static_cast<uint32_t>(RejReason::service_mismatch));
  later(5s);
  EXPECT_EQ(two->connection.state(), UcConnection::State::setting_up);
  EXPECT_EQ(two->connection.session(), nullptr);
}

TEST_F(CallTest, AStrangersCallIsRefused) {
  b.callee_expects = make_qpn(kA.port, 10);
  a_calls();
  talk();
  EXPECT_EQ(one->connection.handshake()->peer().reason,
            static_cast<uint32_t>(RejReason::bad_parameters));
  EXPECT_EQ(two->connection.state(), UcConnection::State::setting_up);
}

// spec/threats 4: who sends from elsewhere draws an answer to itself, and none to the peer.
TEST_F(CallTest, ACallFromElsewhereIsNotThatOfThePeer) {
  a_calls();
  const auto req = a.said(now);
  ASSERT_EQ(req.size(), 1U);
  const auto expect_refused = [&] {
    EXPECT_EQ(b.hear(req[0].bytes, kStranger, now), nullptr);
    const auto said = b.said(now);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].to, kStranger);
    EXPECT_EQ(parse(said[0].bytes).type, CtlType::rej);
    EXPECT_EQ(parse(said[0].bytes).reason, static_cast<uint32_t>(RejReason::bad_parameters));
  };
  // Its own call is under way, then that of the peer is answered.
  b_calls();
  EXPECT_EQ(b.said(now).size(), 1U);
  expect_refused();
  EXPECT_EQ(two->connection.handshake()->state(), Handshake::State::req_sent);
  b.hear(req[0].bytes, kA, now);
  later(100ms);
  expect_open();
}

TEST_F(CallTest, NorIsOneBehindThatOfThePeer) {
  a_calls();
  const auto req = a.said(now);
  ASSERT_EQ(req.size(), 1U);
  b.hear(req[0].bytes, kA, now);
  ASSERT_EQ(two->connection.handshake()->state(), Handshake::State::rep_sent);
  EXPECT_EQ(b.said(now).size(), 1U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(b.hear(req[0].bytes, kStranger, now), nullptr);
    for (const auto& d : b.said(now)) EXPECT_EQ(d.to, kStranger);
  }
  b.hear(req[0].bytes, kA, now);  // the REP was lost
  talk();
  expect_open();
}

// A keepalive or a goodbye that comes while the call is under way belongs to no session yet.
TEST_F(CallTest, WhatASessionSaysMeansNothingBeforeThereIsOne) {
  a_calls();
  const auto req = a.said(now);
  ASSERT_EQ(req.size(), 1U);
  for (const CtlType type : {CtlType::ka, CtlType::dreq}) {
    expect_unwanted(a, one->connection, parse(req[0].bytes).source_token, type, kB);
  }
  b.hear(req[0].bytes, kA, now);
  talk();
  expect_open();
}

// spec/wdp 3.6: there was no handshake, and a late answer to another one does not begin one.
TEST_F(CallTest, AHandshakeMeansNothingToAStaticSession) {
  auto& p = b.add_peer();
  const UcParameters parameters{.path = {.to = kA},
                                .peer_token = SessionToken{3},
                                .own_token = SessionToken{4},
                                .own_qpn = make_qpn(kB.port, 5),
                                .peer_qpn = make_qpn(kA.port, 9),
                                .is_static = true};
  b.port.start_static(p.connection, parameters, kA, now);
  for (const CtlType type : {CtlType::rep, CtlType::rtu, CtlType::rej, CtlType::wait}) {
    expect_unwanted(b, p.connection, SessionToken{4}, type, kA);
  }
  EXPECT_EQ(p.connection.state(), UcConnection::State::open);
}

}  // namespace
}  // namespace weft::wdp
