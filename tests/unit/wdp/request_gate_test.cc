#include "wdp/request_gate.h"

#include <gtest/gtest.h>

#include "tests/support/host.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using wire::CtlType;
using wire::RejReason;
using wire::WdpCtl;

const Endpoint kFrom{Gid::from_ipv4(0x0a000001), 50000};

struct RequestGateTest : ::testing::Test {
  WdpCtl req{.type = CtlType::req,
             .didx = 0,
             .sidx = 9,
             .source_token = SessionToken{5},
             .source = make_qpn(50000, 9),
             .xid = Xid{77},
             .service = wire::CtlService::uc,
             .max_payload = 1472};
  SeededRandom random{1};
  Time now = Time::from_ns(1'000'000'000);
  RequestGate gate{random, now};
};

TEST_F(RequestGateTest, AdmitsWhileThereIsRoom) {
  const auto a = gate.judge(req, kFrom, RequestGate::kMostHalfOpen - 1, now);
  EXPECT_TRUE(a.admitted);
  EXPECT_FALSE(a.validated);
}

// spec/wdp 4.3: Over 128 half-open per port: COOKIE only.
TEST_F(RequestGateTest, AsksForACookieBeyond128) {
  auto a = gate.judge(req, kFrom, RequestGate::kMostHalfOpen, now);
  EXPECT_FALSE(a.admitted);
  EXPECT_EQ(a.answer.type, CtlType::cookie);
  EXPECT_EQ(a.answer.token, SessionToken{5});
  EXPECT_EQ(a.answer.xid, Xid{77});
  EXPECT_EQ(a.answer.didx, 9);
  EXPECT_NE(a.answer.cookie, HandshakeCookie{});
  req.cookie = a.answer.cookie;
  a = gate.judge(req, kFrom, RequestGate::kMostHalfOpen, now);
  EXPECT_TRUE(a.admitted && a.validated);
}

TEST_F(RequestGateTest, ACookieIsGoodForWhomItWasMade) {
  req.cookie = gate.judge(req, kFrom, RequestGate::kMostHalfOpen, now).answer.cookie;
  const auto validated = [&](const WdpCtl& r, const Endpoint& from) {
    return gate.judge(r, from, 0, now).validated;
  };
  EXPECT_TRUE(validated(req, kFrom));
  EXPECT_FALSE(validated(req, {Gid::from_ipv4(0x0a000002), 50000}));
  EXPECT_FALSE(validated(req, {kFrom.address, 50001}));
  WdpCtl other = req;
  other.source_token = SessionToken{6};
  EXPECT_FALSE(validated(other, kFrom));
  other = req;
  other.xid = Xid{78};
  EXPECT_FALSE(validated(other, kFrom));
  other = req;
  other.cookie = HandshakeCookie{req.cookie.value() ^ 1};
  EXPECT_FALSE(validated(other, kFrom));
}

TEST_F(RequestGateTest, ACookieLivesForTwoSecretsAtMost) {
  req.cookie = gate.judge(req, kFrom, RequestGate::kMostHalfOpen, now).answer.cookie;
  now = now + 29s;
  EXPECT_TRUE(gate.judge(req, kFrom, 0, now).validated);
  now = now + 5s;
  EXPECT_TRUE(gate.judge(req, kFrom, 0, now).validated);
  now = now + 30s;
  EXPECT_FALSE(gate.judge(req, kFrom, 0, now).validated);
}

TEST_F(RequestGateTest, ALongSilenceMakesAllCookiesOld) {
  req.cookie = gate.judge(req, kFrom, RequestGate::kMostHalfOpen, now).answer.cookie;
  now = now + 60s;
  EXPECT_FALSE(gate.judge(req, kFrom, 0, now).validated);
}

TEST_F(RequestGateTest, UnknownCriticalTlvsAreRefused) {
  Buffer tlvs(12);
  wire::WdpTlv{.type = 3, .value = Bytes{tlvs}.first(2)}.encode(tlvs.data());
  req.tlvs = Bytes{tlvs}.first(8);
  EXPECT_TRUE(gate.judge(req, kFrom, 0, now).admitted);
  wire::WdpTlv{.type = 3, .critical = true, .value = Bytes{tlvs}.first(2)}.encode(tlvs.data());
  const auto a = gate.judge(req, kFrom, 0, now);
  EXPECT_FALSE(a.admitted);
  EXPECT_EQ(a.answer.type, CtlType::rej);
  EXPECT_EQ(a.answer.reason, static_cast<uint32_t>(RejReason::critical_tlv));
}

TEST_F(RequestGateTest, WhatNobodyCouldAcceptIsRefused) {
  const auto reason = [&](const WdpCtl& r) {
    const auto a = gate.judge(r, kFrom, 0, now);
    EXPECT_FALSE(a.admitted);
    EXPECT_EQ(a.answer.type, CtlType::rej);
    return static_cast<RejReason>(a.answer.reason);
  };
  WdpCtl r = req;
  r.service = wire::CtlService::rd_channel;
  EXPECT_EQ(reason(r), RejReason::service_mismatch);
  r.service = wire::CtlService{77};
  EXPECT_EQ(reason(r), RejReason::service_mismatch);
  r = req;
  r.max_payload = 48 + 15;  // no stride fits in
  EXPECT_EQ(reason(r), RejReason::bad_parameters);
  r.max_payload = 48 + 16;
  EXPECT_TRUE(gate.judge(r, kFrom, 0, now).admitted);
  // A UD queue pair has no segments.
  r.service = wire::CtlService::ud_resolution;
  r.max_payload = 0;
  EXPECT_TRUE(gate.judge(r, kFrom, 0, now).admitted);
}

TEST_F(RequestGateTest, NoAnswerIsMoreThanThreeTimesTheQuestion) {
  req.cookie = HandshakeCookie{1};
  const auto a = gate.judge(req, kFrom, RequestGate::kMostHalfOpen, now);
  EXPECT_LE(a.answer.size(), 3 * WdpCtl::kMinRequest);
  EXPECT_LE(RequestGate::rejection(req, RejReason::no_listener).size(), WdpCtl::kMinRequest);
}

// spec/wdp 6.1: REJ reason 3 in our version with off 28 = XID copied if datagram >= 32, at most
// 10/s.
TEST_F(RequestGateTest, AnotherVersionIsToldSoTenTimesASecond) {
  Buffer d(32);
  d[0] = std::byte{0xd2};
  d[8] = std::byte{1};
  store_be(d.data() + 28, uint32_t{0x5eed0001});
  for (int round = 0; round < 2; ++round) {
    size_t answers = 0;
    for (int i = 0; i < 30; ++i) {
      const auto rej = gate.other_version(d, now);
      if (!rej) continue;
      ++answers;
      EXPECT_EQ(rej->type, CtlType::rej);
      EXPECT_EQ(rej->xid, Xid{0x5eed0001});
      EXPECT_EQ(rej->reason, static_cast<uint32_t>(RejReason::version));
      EXPECT_LE(rej->size(), 3 * d.size());
    }
    EXPECT_EQ(answers, 10U);
    now = now + 1s;
  }
  d.resize(31);
  EXPECT_FALSE(gate.other_version(d, now));
  EXPECT_FALSE(gate.other_version(Buffer(64), now));
}

// spec/wdp-rd 2.4: who has a channel that this port has not is told, by less than it sent, so often
// that nobody finds a token in use by asking.
TEST_F(RequestGateTest, AChannelThatIsNotKnownIsDisowned) {
  WdpCtl ka{.type = CtlType::ka,
            .token = SessionToken{0x1234},
            .source_token = SessionToken{0x99},
            .source = make_qpn(50000, 0),
            .destination = make_qpn(40000, 0),
            .xid = Xid{7},
            .service = wire::CtlService::rd_channel};
  const auto ask = [&] {
    Buffer d(ka.size());
    ka.encode(d.data());
    return gate.disowned(*wire::WdpCommon::parse(d), d, now);
  };
  const auto drep = ask();
  ASSERT_TRUE(drep);
  EXPECT_EQ(drep->type, CtlType::drep);
  EXPECT_EQ(drep->token, SessionToken{0x99});
  EXPECT_EQ(drep->source_token, SessionToken{0x1234});
  EXPECT_EQ(drep->xid, Xid{7});
  EXPECT_EQ(drep->service, wire::CtlService::rd_channel);
  EXPECT_LE(drep->size(), ka.size());
  ka.type = CtlType::dreq;
  EXPECT_TRUE(ask());
  for (const auto other : {CtlType::kaa, CtlType::drep, CtlType::probe, CtlType::rtu}) {
    ka.type = other;
    EXPECT_FALSE(ask());
  }
  ka.type = CtlType::ka;
  ka.service = wire::CtlService::uc;
  EXPECT_FALSE(ask());
  ka.service = wire::CtlService::rd_channel;
  for (uint32_t i = 2; i < RequestGate::kDisownedPerSecond; ++i) EXPECT_TRUE(ask());
  EXPECT_FALSE(ask());
  now = now + 1s;
  EXPECT_TRUE(ask());
}

}  // namespace
}  // namespace weft::wdp
