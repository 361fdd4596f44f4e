// A whole port against another one: who is found for a datagram, and what strangers get.

#include <set>

#include "tests/unit/wdp/wdp_socket_fixture.h"

namespace weft::wdp {
namespace {

TEST_F(PortTest, AListenerIsCalledAndDataGoBothWays) {
  stand();
  EXPECT_EQ(b.requests[0].private_data, pattern_bytes(20, 1));
  exchange(*caller, *callee);
  exchange(*callee, *caller);
  EXPECT_EQ(a.port.drops().total() + b.port.drops().total(), 0U);
}

// spec/wdp 4.1: the address pair observed in the handshake is the session's address pair (so NAT'd
// .. source ports work); spec/wdp-uc 3.1: the caller's didx must be its index all the same.
TEST_F(PortTest, ANatBeforeTheCallerDoesNoHarm) {
  const Endpoint outside{Gid::from_ipv4(0xc0000201), 1234};
  caller = &call();
  const auto through = [&] {
    for (bool any = true; any;) {
      any = false;
      for (const auto& d : a.said(now)) {
        any = true;
        b.hear(d.bytes, outside, now);
      }
      for (const auto& d : b.said(now)) {
        any = true;
        EXPECT_EQ(d.to, outside);
        a.hear(d.bytes, kB, now);
      }
    }
  };
  through();
  callee = &accept();
  through();
  EXPECT_EQ(caller->connection.state(), UcConnection::State::open);
  callee->host.host.post({.operation = Operation::send}, {test::segment(callee->host.host, text)});
  caller->host.host.post_receive(1, {test::segment(caller->host.host, room)});
  through();
  EXPECT_EQ(caller->host.host.received.size(), 1U);
  EXPECT_EQ(a.port.drops().total(), 0U);
}

// spec/wdp 4.3: duplicate REQ repeats the last answer.
TEST_F(PortTest, ACopyOfAReqBeginsNothing) {
  caller = &call();
  const auto req = a.said(now);
  ASSERT_EQ(req.size(), 1U);
  b.hear(req[0].bytes, kA, now);
  b.hear(req[0].bytes, kA, now);
  EXPECT_EQ(b.requests.size(), 1U);
  auto answers = b.said(now);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(parse(answers[0].bytes).type, CtlType::wait);
  callee = &accept();
  b.hear(req[0].bytes, kA, now);
  answers = b.said(now);
  ASSERT_EQ(answers.size(), 2U);
  for (const auto& d : answers) EXPECT_EQ(parse(d.bytes).type, CtlType::rep);
  EXPECT_EQ(b.port.half_open(), 1U);
  a.hear(answers[0].bytes, kB, now);
  talk();
  EXPECT_EQ(b.port.half_open(), 0U);
  // A copy that was under way for long.
  b.hear(req[0].bytes, kA, now);
  EXPECT_EQ(b.requests.size(), 1U);
  EXPECT_TRUE(b.said(now).empty());
  exchange(*caller, *callee);
}

TEST_F(PortTest, TheListenerMayRefuse) {
  caller = &call();
  talk();
  EXPECT_TRUE(b.port.reject(b.requests[0].key, RejReason::application, pattern_bytes(9, 3)));
  EXPECT_FALSE(b.port.reject(b.requests[0].key, RejReason::application, {}));
  EXPECT_FALSE(b.port.accept(b.requests[0].key, caller->connection, offer_of_b(), now));
  talk();
  EXPECT_EQ(caller->connection.state(), UcConnection::State::failed);
  const Handshake& h = *caller->connection.handshake();
  EXPECT_EQ(h.failure(), Handshake::Failure::rejected);
  EXPECT_EQ(Buffer(h.peer().private_data.begin(), h.peer().private_data.end()),
            pattern_bytes(9, 3));
  EXPECT_TRUE(caller->connection.gone());
  EXPECT_EQ(b.port.half_open(), 0U);
}

TEST_F(PortTest, WithoutAListenerTheAnswerIsRej) {
  b.refuse = RejReason::no_listener;
  caller = &call();
  talk();
  EXPECT_EQ(caller->connection.handshake()->peer().reason,
            static_cast<uint32_t>(RejReason::no_listener));
  EXPECT_EQ(b.port.half_open(), 0U);
}

// spec/wdp 2.5: data from another address is dropped even with the right token.
TEST_F(PortTest, WhatIsNotForASessionIsDropped) {
  stand();
  caller->host.host.post({.operation = Operation::send}, {test::segment(caller->host.host, text)});
  callee->host.host.post_receive(1, {test::segment(callee->host.host, room)});
  const auto data = a.said(now);
  ASSERT_EQ(data.size(), 3U);
  Buffer d = data[0].bytes;
  EXPECT_EQ(b.hear(d, kStranger, now), nullptr);
  EXPECT_EQ(b.hear(d, {kA.address, 50001}, now), nullptr);
  EXPECT_EQ(b.port.drops().of(WdpDrop::wrong_address), 2U);
  d[2] = std::byte{6};
  EXPECT_EQ(b.hear(d, kA, now), nullptr);
  EXPECT_EQ(b.port.drops().of(WdpDrop::wrong_index), 1U);
  d[2] = std::byte{5};  // its index; a listener's sessions take 0, too
  d[7] ^= std::byte{1};
  EXPECT_EQ(b.hear(d, kA, now), nullptr);
  EXPECT_EQ(b.port.drops().of(WdpDrop::unknown_token), 1U);
  d[7] ^= std::byte{1};
  EXPECT_EQ(b.hear(d, kA, now), &callee->connection);
  b.hear(data[1].bytes, kA, now);
  b.hear(data[2].bytes, kA, now);
  EXPECT_EQ(callee->host.host.received.size(), 1U);
}

// spec/wdp 2.5: didx must equal the QP's index, or be 0 for sessions accepted by a
// listener. Who has called has a socket of its own.
TEST_F(PortTest, TheIndexOfAListenerIsForWhomItHasAccepted) {
  stand();
  callee->host.host.post({.operation = Operation::send}, {test::segment(callee->host.host, text)});
  caller->host.host.post_receive(1, {test::segment(caller->host.host, room)});
  const auto data = b.said(now);
  ASSERT_EQ(data.size(), 3U);
  Buffer d = data[0].bytes;
  EXPECT_EQ(std::exchange(d[2], std::byte{0}), std::byte{9});
  EXPECT_EQ(a.hear(d, kB, now), nullptr);
  EXPECT_EQ(a.port.drops().of(WdpDrop::wrong_index), 1U);
  for (const auto& good : data) a.hear(good.bytes, kB, now);
  EXPECT_EQ(caller->host.host.received.size(), 1U);
}

TEST_F(PortTest, ATokenRestsForTwoSeconds) {
  stand();
  const SessionToken token = callee->connection.session()->parameters().own_token;
  caller->connection.close(now);
  talk();
  EXPECT_EQ(callee->connection.state(), UcConnection::State::ended);
  later(2s);
  EXPECT_TRUE(callee->connection.gone() && caller->connection.gone());
  b.port.remove(callee->connection, now);
  // A source of randomness that insists.
  struct Insists final : Random {
    uint64_t next() override { return said++ < 3 ? token : 1234; }
    uint64_t token = 0;
    int said = 0;
  } random;
  random.token = token.value();
  EXPECT_EQ(b.port.demux().fresh_token(random, now + 1999ms), SessionToken{1234});
  EXPECT_EQ(random.said, 4);
  random.said = 0;
  EXPECT_EQ(b.port.demux().fresh_token(random, now + 2s), token);
}

// spec/threats 5: all 32 bits of a token have to be guessed.
TEST_F(PortTest, TokensAreHardToPredict) {
  SystemRandom random;
  std::set<uint32_t> tokens;
  std::set<uint32_t> steps;
  uint32_t always = ~0U;
  uint32_t ever = 0;
  uint32_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint32_t token = b.port.demux().fresh_token(random, now).value();
    tokens.insert(token);
    steps.insert(token - last);
    always &= token;
    ever |= token;
    last = token;
  }
  EXPECT_GE(tokens.size(), 999U);
  EXPECT_GE(steps.size(), 999U);
  EXPECT_EQ(always, 0U);
  EXPECT_EQ(ever, ~0U);
  EXPECT_FALSE(tokens.contains(0));
}

// A goodbye takes the token and the address, as data do; what has only one of them is not answered.
TEST_F(PortTest, AForgedGoodbyeEndsNothing) {
  stand();
  const SessionToken token = callee->connection.session()->parameters().own_token;
  const auto goodbye = [](SessionToken t) {
    const WdpCtl c{.type = CtlType::dreq, .didx = 5, .sidx = 9, .token = t};
    Buffer d(c.size());
    c.encode(d.data());
    return d;
  };
  b.hear(goodbye(token), kStranger, now);
  EXPECT_EQ(b.port.drops().of(WdpDrop::wrong_address), 1U);
  for (uint32_t bit = 0; bit < 32; ++bit) {
    b.hear(goodbye(SessionToken{token.value() ^ 1U << bit}), kA, now);
  }
  EXPECT_EQ(b.port.drops().of(WdpDrop::unknown_token), 32U);
  EXPECT_TRUE(b.said(now).empty());
  exchange(*caller, *callee);
  EXPECT_EQ(callee->connection.state(), UcConnection::State::open);
  // With both it is the peer's.
  b.hear(goodbye(token), kA, now);
  EXPECT_NE(callee->connection.state(), UcConnection::State::open);
}

// spec/threats 4: the passive side says no more than three times what came before the peer has
// shown that it is there; that includes keepalives and probes.
TEST_F(PortTest, AForgedReqDrawsThreeTimesItsSizeAtMost) {
  const Buffer req = request(5, 77, [](WdpCtl& c) { c.max_payload = 8972; });
  b.hear(req, kStranger, now);
  Offer o = offer_of_b();
  o.private_data = pattern_bytes(512, 1);
  auto& p = b.add_peer();
  b.port.accept(b.requests[0].key, p.connection, o, now);
  size_t bytes = 0;
  for (int i = 0; i < 400; ++i) {
    for (const auto& d : b.said(now)) bytes += d.bytes.size();
    now = now + 50ms;
    b.tick(now);
  }
  EXPECT_GT(bytes, 512U);
  EXPECT_LE(bytes, 3 * req.size());
  EXPECT_EQ(p.connection.state(), UcConnection::State::failed);
  EXPECT_EQ(p.connection.handshake()->failure(), Handshake::Failure::timeout);
}

TEST_F(PortTest, WhatIsGivenUpBeforeItStandsTakesNoData) {
  caller = &call();
  talk();
  callee = &accept();
  const auto rep = b.said(now);
  ASSERT_EQ(rep.size(), 1U);
  callee->connection.abort(0, now);
  EXPECT_EQ(callee->connection.state(), UcConnection::State::failed);
  // The peer heard the REP, and sends.
  a.hear(rep[0].bytes, kB, now);
  caller->host.host.post({.operation = Operation::send}, {test::segment(caller->host.host, text)});
  callee->host.host.post_receive(1, {test::segment(callee->host.host, room)});
  talk([&](bool from_a, const Buffer&) { return from_a; });
  EXPECT_TRUE(callee->host.host.received.empty());
  EXPECT_FALSE(callee->host.host.end);
  EXPECT_TRUE(callee->connection.gone());
}

TEST_F(PortTest, ACallMayBeWithdrawn) {
  caller = &call();
  caller->connection.close(now);
  EXPECT_EQ(caller->connection.state(), UcConnection::State::failed);
  EXPECT_EQ(caller->connection.handshake()->failure(), Handshake::Failure::withdrawn);
  EXPECT_TRUE(a.said(now).empty());
  EXPECT_TRUE(caller->connection.gone());
  EXPECT_TRUE(caller->connection.deadline().is_never());
}

// --- many strangers

// spec/wdp 4.3: Over 128 half-open per port: COOKIE only.
TEST_F(PortTest, ManyStrangersGetCookiesAndLeaveNothing) {
  for (uint32_t i = 0; i < 1000; ++i) b.hear(request(i + 1, i), kStranger, now);
  EXPECT_EQ(b.requests.size(), RequestGate::kMostHalfOpen);
  EXPECT_EQ(b.port.half_open(), RequestGate::kMostHalfOpen);
  size_t cookies = 0;
  for (const auto& d : b.said(now)) {
    cookies += parse(d.bytes).type == CtlType::cookie ? 1 : 0;
    EXPECT_LE(d.bytes.size(), 256U);
  }
  EXPECT_EQ(cookies, 64U);  // what is more than that is not even answered
  // One who is where it says gets in.
  caller = &call();
  talk();
  EXPECT_EQ(b.requests.size(), RequestGate::kMostHalfOpen + 1);
  callee = &accept();
  talk();
  EXPECT_EQ(caller->connection.state(), UcConnection::State::open);
}

TEST_F(PortTest, RubbishIsCountedAndNothingElse) {
  stand();
  Buffer d(64);
  EXPECT_EQ(b.hear(d, kA, now), nullptr);
  EXPECT_EQ(b.hear(Bytes{d}.first(3), kA, now), nullptr);
  d[0] = std::byte{0xd1};
  d[1] = std::byte{0x60};
  EXPECT_EQ(b.hear(d, kA, now), nullptr);
  d[1] = std::byte{0x30};  // RD: no such channel
  EXPECT_EQ(b.hear(d, kA, now), nullptr);
  EXPECT_EQ(b.port.drops().of(WdpDrop::not_wdp), 1U);
  EXPECT_EQ(b.port.drops().of(WdpDrop::too_short), 1U);
  EXPECT_EQ(b.port.drops().of(WdpDrop::unknown_class), 1U);
  EXPECT_EQ(b.port.drops().of(WdpDrop::unknown_token), 1U);
  EXPECT_TRUE(b.said(now).empty());
  // spec/wdp 6.1.
  Buffer other = request(5, 77);
  other[0] = std::byte{0xd2};
  for (int i = 0; i < 30; ++i) b.hear(other, kA, now);
  const auto said = b.said(now);
  ASSERT_EQ(said.size(), 10U);
  EXPECT_EQ(parse(said[0].bytes).reason, static_cast<uint32_t>(RejReason::version));
  exchange(*caller, *callee);
}

// --- static sessions

TEST_F(PortTest, AStaticSessionMayTakeFromAnybody) {
  auto& p = b.add_peer();
  UcParameters parameters{.path = {.to = kA},
                          .peer_token = SessionToken{7},
                          .own_token = SessionToken{8},
                          .own_qpn = make_qpn(7471, 5),
                          .peer_qpn = make_qpn(50000, 9),
                          .is_static = true};
  b.port.start_static(p.connection, parameters, {}, now);
  p.host.host.post_receive(1, {test::segment(p.host.host, room)});
  Buffer d(wire::WdpData::kSize + 10);
  wire::WdpData{.didx = 5,
                .token = SessionToken{8},
                .psn = Psn{77},
                .msn = Msn{3},
                .mlen = 10,
                .last = true,
                .opcode = wire::Opcode::send,
                .stride = 1424}
      .encode(d.data());
  EXPECT_EQ(b.hear(d, kStranger, now), &p.connection);
  EXPECT_EQ(p.host.host.received.size(), 1U);
  // "expects no keepalive and answers nothing"
  now = now + 60s;
  b.tick(now);
  EXPECT_TRUE(b.said(now).empty());
  EXPECT_EQ(p.connection.state(), UcConnection::State::open);
  EXPECT_TRUE(p.connection.port_in_doubt_since().is_never());
}

}  // namespace
}  // namespace weft::wdp
