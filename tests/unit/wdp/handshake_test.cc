// Both parts of spec/wdp 4 against each other, message by message.

#include "tests/unit/wdp/handshake_fixture.h"

namespace weft::wdp {
namespace {

TEST_F(HandshakeTest, ReqRepRtu) {
  EXPECT_TRUE(a.unanswered_since().is_never());
  connect();
  EXPECT_EQ(a.unanswered_since(), now);
  EXPECT_EQ(a.state(), Handshake::State::req_sent);
  const Said req = one(a, CtlType::req);
  EXPECT_GE(req.bytes.size(), WdpCtl::kMinRequest);
  EXPECT_EQ(req.ctl.token, SessionToken{});
  EXPECT_EQ(req.ctl.source_token, SessionToken{0xa1});
  EXPECT_EQ(req.ctl.didx, wire::kPortIndex);
  EXPECT_EQ(req.ctl.destination, Qpn{});
  EXPECT_EQ(req.ctl.sidx, 9);

  request(req);
  EXPECT_EQ(b.state(), Handshake::State::req_received);
  EXPECT_FALSE(b.ready());
  EXPECT_TRUE(std::equal(b.peer().private_data.begin(), b.peer().private_data.end(),
                         active_offer().private_data.begin()));
  b.accept(passive_offer(), now);
  EXPECT_EQ(b.state(), Handshake::State::rep_sent);
  const Said rep = one(b, CtlType::rep);
  EXPECT_EQ(rep.ctl.token, SessionToken{0xa1});
  EXPECT_EQ(rep.ctl.xid, req.ctl.xid);
  EXPECT_EQ(rep.ctl.ird, 3);
  EXPECT_EQ(rep.ctl.ord, 4);

  now = now + 3ms;
  hear(a, rep);
  EXPECT_EQ(a.state(), Handshake::State::established);
  EXPECT_TRUE(a.unanswered_since().is_never());
  EXPECT_TRUE(b.unanswered_since().is_never()) << "who was called waits for nobody";
  const Said rtu = one(a, CtlType::rtu);
  EXPECT_EQ(rtu.ctl.token, SessionToken{0xb2});
  hear(b, rtu);
  EXPECT_EQ(b.state(), Handshake::State::established);

  const UcParameters pa = a.parameters();
  const UcParameters pb = b.parameters();
  EXPECT_EQ(pa.peer_token, SessionToken{0xb2});
  EXPECT_EQ(pb.peer_token, SessionToken{0xa1});
  EXPECT_EQ(pa.own_token, pb.peer_token);
  EXPECT_EQ(pa.peer_first_psn, Psn{200});
  EXPECT_EQ(pb.peer_first_psn, Psn{100});
  EXPECT_EQ(pa.first_psn, Psn{100});
  // spec/mpa 2.3.3, as on TCP: who asks for less decides.
  EXPECT_EQ(pa.ord, 3);
  EXPECT_EQ(pb.ird, 3);
  EXPECT_EQ(pa.ird, 4);
  EXPECT_EQ(pb.ord, 4);
  EXPECT_EQ(pa.max_payload, 1472U);
  EXPECT_EQ(pb.max_payload, 1472U);
  for (const auto& p : {pa, pb}) EXPECT_TRUE(p.crc && p.immediate && p.reads);
  EXPECT_EQ(pa.rtt, 3ms);
  EXPECT_FALSE(pa.from_listener);
  EXPECT_TRUE(pb.from_listener);
  // The passive QP is not on the listener's socket: data bear didx 0.
  EXPECT_EQ(pa.peer_index(), 0);
  EXPECT_EQ(pb.peer_index(), 9);
}

TEST_F(HandshakeTest, FeaturesAreWhatBothHave) {
  connect();
  request(one(a, CtlType::req));
  Offer less = passive_offer();
  less.features = {};
  b.accept(less, now);
  hear(a, one(b, CtlType::rep));
  EXPECT_FALSE(a.parameters().crc);
  EXPECT_FALSE(a.parameters().immediate);
  EXPECT_FALSE(a.parameters().reads);
}

// Neither side of a host's own connection may have had a processor when it was needed.
TEST_F(HandshakeTest, HowFarAwayThePeerIsShowsUnlessThatIsKnown) {
  for (const auto& [takes, known, close_by] : {std::tuple{kCloseBy - 1us, false, true},
                                               {kCloseBy, false, false},
                                               {kCloseBy, true, true}}) {
    Handshake caller{random};
    Handshake called{random};
    Offer offer = active_offer();
    offer.window = 1000;
    offer.close_by = known;
    caller.connect(offer, {.to = kPassive}, Qpn{}, false, now);
    const Said req = one(caller, CtlType::req);
    now = now + takes;
    called.requested(req.ctl, {.to = kActive}, req.bytes.size(), false);
    called.accept(passive_offer(), now);
    hear(caller, one(called, CtlType::rep));
    EXPECT_EQ(caller.parameters().window, 1000U);
    EXPECT_EQ(caller.parameters().close_by, close_by);
  }
}

// Who was called has seen nothing of the way yet when it answers; the RTU shows it.
TEST_F(HandshakeTest, WhoIsCalledLearnsHowFarAwayThePeerIsByTheRtu) {
  for (const bool again : {false, true}) {
    Handshake caller{random};
    Handshake called{random};
    caller.connect(active_offer(), {.to = kPassive}, Qpn{}, false, now);
    const Said req = one(caller, CtlType::req);
    called.requested(req.ctl, {.to = kActive}, req.bytes.size(), false);
    called.accept(passive_offer(), now);
    EXPECT_FALSE(called.parameters().close_by);
    hear(caller, one(called, CtlType::rep));
    if (again) {
      called.requested_again(req.bytes.size(), false, now);
      (void)one(called, CtlType::rep);
    }
    now = now + 7ms;
    hear(called, one(caller, CtlType::rtu));
    EXPECT_EQ(called.state(), Handshake::State::established);
    // Of two REPs nobody knows which one it was.
    EXPECT_EQ(called.round_trip(), again ? std::nullopt : std::optional<Duration>{7ms});
    EXPECT_EQ(called.parameters().close_by, !again);
  }
}

TEST_F(HandshakeTest, ACookieTakesARoundTripOfItsOwn) {
  connect();
  const Said req = one(a, CtlType::req);
  now = now + 20ms;
  WdpCtl cookie{.type = CtlType::cookie, .xid = req.ctl.xid, .service = req.ctl.service};
  cookie.cookie = HandshakeCookie{1};
  EXPECT_TRUE(a.received(cookie, cookie.size(), now).ok());
  request(one(a, CtlType::req));
  b.accept(passive_offer(), now);
  now = now + 3ms;
  hear(a, one(b, CtlType::rep));
  EXPECT_EQ(a.round_trip(), Duration{3ms});
}

TEST_F(HandshakeTest, TheSideThatAnswersSendsAsItsOfferSays) {
  a.connect(active_offer(), {.to = kPassive, .traffic_class = 0x20, .hop_limit = 7}, Qpn{}, false,
            now);
  request(one(a, CtlType::req));
  EXPECT_EQ(b.path(), Path{.to = kActive});
  Offer passive = passive_offer();
  passive.traffic_class = 0x68;
  passive.hop_limit = 9;
  passive.rate = 2.5;
  b.accept(passive, now);
  const Path back{.to = kActive, .traffic_class = 0x68, .hop_limit = 9, .rate = 2.5};
  Train rep;
  b.fill(rep);
  EXPECT_EQ(rep.path(), back);
  EXPECT_EQ(b.parameters().path, back);
  const Path there{.to = kPassive, .traffic_class = 0x20, .hop_limit = 7};
  EXPECT_EQ(a.path(), there);
}

// The peer does not hear of them.
TEST_F(HandshakeTest, WhatASideKnowsOfItsOwnSocketAndProgramIsItsSessions) {
  Offer active = active_offer();
  active.receive_buffer = 106'000;
  active.retry_count = 2;
  a.connect(active, {.to = kPassive}, Qpn{}, false, now);
  request(one(a, CtlType::req));
  Offer passive = passive_offer();
  passive.receive_buffer = 53'000;
  passive.retry_count = 5;
  b.accept(passive, now);
  hear(a, one(b, CtlType::rep));
  EXPECT_EQ(a.parameters().receive_buffer, 106'000U);
  EXPECT_EQ(a.parameters().retry_count, 2);
  EXPECT_EQ(b.parameters().receive_buffer, 53'000U);
  EXPECT_EQ(b.parameters().retry_count, 5);
}

TEST_F(HandshakeTest, AReqIsRepeatedAndGivenUp) {
  const Time start = now;
  connect();
  std::vector<int64_t> times;
  std::optional<Xid> xid;
  while (a.state() == Handshake::State::req_sent) {
    for (const Said& s : said(a)) {
      times.push_back((now - start).count() / 1'000'000);
      EXPECT_EQ(s.ctl.attempt, times.size() - 1);
      EXPECT_EQ(s.ctl.xid, xid.value_or(s.ctl.xid));
      xid = s.ctl.xid;
    }
    now = a.deadline();
    a.tick(now);
  }
  EXPECT_EQ(times, (std::vector<int64_t>{0, 100, 300, 700, 1500, 3100, 6300}));
  EXPECT_EQ(now - start, 12700ms);
  EXPECT_EQ(a.failure(), Failure::timeout);
  EXPECT_TRUE(a.deadline().is_never());
}

TEST_F(HandshakeTest, ARejectionEndsIt) {
  connect();
  request(one(a, CtlType::req));
  b.reject(RejReason::application, pattern_bytes(10, 5));
  EXPECT_EQ(b.state(), Handshake::State::failed);
  const Said rej = one(b, CtlType::rej);
  hear(a, rej);
  EXPECT_EQ(a.state(), Handshake::State::failed);
  EXPECT_EQ(a.failure(), Failure::rejected);
  EXPECT_EQ(a.peer().reason, static_cast<uint32_t>(RejReason::application));
  ASSERT_EQ(a.peer().private_data.size(), 10U);
  EXPECT_EQ(a.peer().private_data[3], pattern_bytes(10, 5)[3]);
}

// spec/wdp 4.2
TEST_F(HandshakeTest, AClosedPortIsOneWhereNobodyListens) {
  connect();
  a.port_closed();
  EXPECT_EQ(a.failure(), Failure::rejected);
  EXPECT_EQ(a.peer().reason, static_cast<uint32_t>(RejReason::no_listener));
  EXPECT_FALSE(a.ready());
  EXPECT_TRUE(a.deadline().is_never());
}

// Whoever says that a port is closed does not end what stands.
TEST_F(HandshakeTest, AClosedPortMeansNothingOnceThereIsAnAnswer) {
  connect();
  request(one(a, CtlType::req));
  b.accept(passive_offer(), now);
  b.port_closed();
  EXPECT_EQ(b.state(), Handshake::State::rep_sent);
  hear(a, one(b, CtlType::rep));
  a.port_closed();
  EXPECT_EQ(a.state(), Handshake::State::established);
}

TEST_F(HandshakeTest, WaitPushesTheNextTryAndTheDeadline) {
  connect();
  const Said req = one(a, CtlType::req);
  request(req);
  b.requested_again(req.bytes.size(), false, now);
  const Said wait = one(b, CtlType::wait);
  EXPECT_EQ(wait.ctl.reason, kWaitMs);
  hear(a, wait);
  EXPECT_EQ(a.deadline(), now + std::chrono::milliseconds{kWaitMs});
  const Time heard = now;
  for (int i = 0; i < 100 && a.state() == Handshake::State::req_sent; ++i) {
    now = a.deadline();
    a.tick(now);
  }
  EXPECT_EQ(now - heard, 12700ms + std::chrono::milliseconds{kWaitMs});
}

// Nobody is held for ever by a peer that says WAIT again and again.
TEST_F(HandshakeTest, WaitIsBelievedForTenMinutes) {
  connect();
  const Said req = one(a, CtlType::req);
  request(req);
  b.requested_again(req.bytes.size(), false, now);
  Said wait = one(b, CtlType::wait);
  wait.ctl.reason = WdpCtl::kMaxWaitMs;
  const Time first = now;
  while (a.state() == Handshake::State::req_sent) {
    ASSERT_LE(now - first, 11min);
    ASSERT_TRUE(a.received(wait.ctl, wait.bytes.size(), now).ok());
    now = a.deadline();
    a.tick(now);
  }
  EXPECT_EQ(a.failure(), Failure::timeout);
  EXPECT_EQ(now - first, kMostWaiting);
}

TEST_F(HandshakeTest, ACookieIsReturnedAtOnce) {
  connect();
  const Said req = one(a, CtlType::req);
  WdpCtl cookie{.type = CtlType::cookie,
                .token = SessionToken{0xa1},
                .xid = req.ctl.xid,
                .service = wire::CtlService::uc,
                .cookie = HandshakeCookie{77}};
  EXPECT_TRUE(a.received(cookie, 64, now).ok());
  const Said again = one(a, CtlType::req);
  EXPECT_EQ(again.ctl.cookie, HandshakeCookie{77});
  EXPECT_EQ(again.ctl.source_token, req.ctl.source_token);
  // Once for each, and not for ever.
  EXPECT_TRUE(a.received(cookie, 64, now).ok());
  EXPECT_FALSE(a.ready());
  size_t more = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    cookie.cookie = HandshakeCookie{100 + i};
    EXPECT_TRUE(a.received(cookie, 64, now).ok());
    more += said(a).size();
  }
  EXPECT_EQ(more, 7U);
}

TEST_F(HandshakeTest, ALostRepIsRepeatedWhenTheReqIs) {
  connect();
  const Said req = one(a, CtlType::req);
  request(req);
  b.accept(passive_offer(), now);
  (void)one(b, CtlType::rep);
  // Not by a timer: nobody knows yet that the peer is where it says.
  EXPECT_EQ(b.deadline(), now + kHandshakeFails);
  later(a, 100ms);
  const Said again = one(a, CtlType::req);
  b.requested_again(again.bytes.size(), false, now);
  hear(a, one(b, CtlType::rep));
  EXPECT_EQ(a.state(), Handshake::State::established);
  // Which REQ was answered nobody knows.
  EXPECT_EQ(a.parameters().rtt, 0ms);
}

TEST_F(HandshakeTest, WithACookieTheRepIsRepeatedByATimer) {
  connect();
  request(one(a, CtlType::req), true);
  b.accept(passive_offer(), now);
  const Time start = now;
  std::vector<int64_t> times;
  while (b.state() == Handshake::State::rep_sent) {
    for (const Said& s : said(b)) {
      EXPECT_EQ(s.ctl.type, CtlType::rep);
      times.push_back((now - start).count() / 1'000'000);
    }
    now = b.deadline();
    b.tick(now);
  }
  EXPECT_EQ(times, (std::vector<int64_t>{0, 100, 300, 700, 1500, 3100, 6300}));
  EXPECT_EQ(b.failure(), Failure::timeout);
}

// spec/threats.
TEST_F(HandshakeTest, AnUnknownAddressGetsAtMostThreeTimesWhatItSent) {
  connect();
  const Said req = one(a, CtlType::req);
  request(req);
  Offer big = passive_offer();
  big.private_data = pattern_bytes(512, 3);
  b.accept(big, now);
  uint64_t came = req.bytes.size();
  uint64_t went = 0;
  for (int i = 0; i < 50; ++i) {
    for (const Said& s : said(b)) went += s.bytes.size();
    EXPECT_LE(went, 3 * came);
    if (i % 5 == 4) {
      came += req.bytes.size();
      b.requested_again(req.bytes.size(), false, now);
    }
    later(b, 200ms);
  }
  EXPECT_GT(went, came);
}

TEST_F(HandshakeTest, ALostRtuIsRepeated) {
  connect();
  request(one(a, CtlType::req));
  b.accept(passive_offer(), now);
  const Said rep = one(b, CtlType::rep);
  const Time start = now;
  hear(a, rep);
  std::vector<int64_t> times;
  for (int i = 0; i < 10; ++i) {
    for (const Said& s : said(a)) {
      EXPECT_EQ(s.ctl.type, CtlType::rtu);
      times.push_back((now - start).count() / 1'000'000);
    }
    if (a.deadline().is_never()) break;
    now = a.deadline();
    a.tick(now);
  }
  EXPECT_EQ(times, (std::vector<int64_t>{0, 100, 300}));
  // And whenever the REP comes again.
  hear(a, rep);
  (void)one(a, CtlType::rtu);
}

TEST_F(HandshakeTest, DataCountAsRtuAndEndItsRepetition) {
  connect();
  request(one(a, CtlType::req));
  b.accept(passive_offer(), now);
  hear(a, one(b, CtlType::rep));
  b.confirmed(now);
  EXPECT_EQ(b.state(), Handshake::State::established);
  EXPECT_TRUE(b.deadline().is_never());
  a.confirmed(now);
  EXPECT_TRUE(a.deadline().is_never());
}

TEST_F(HandshakeTest, AnswersToAnotherHandshakeMeanNothing) {
  connect();
  const Said req = one(a, CtlType::req);
  for (const CtlType type :
       {CtlType::rep, CtlType::rej, CtlType::wait, CtlType::cookie, CtlType::rtu}) {
    WdpCtl c{.type = type,
             .source_token = SessionToken{5},
             .xid = Xid{req.ctl.xid.value() + 1},
             .service = wire::CtlService::uc};
    const auto v = a.received(c, 64, now);
    ASSERT_FALSE(v.ok());
    EXPECT_EQ(v.error(), wire::WdpDrop::stale_handshake);
  }
  EXPECT_EQ(a.state(), Handshake::State::req_sent);
  EXPECT_FALSE(a.ready());
}

TEST_F(HandshakeTest, ARepThatAsksForTooMuchIsRefused) {
  connect();
  const Said req = one(a, CtlType::req);
  request(req);
  b.accept(passive_offer(), now);
  Said rep = one(b, CtlType::rep);
  rep.ctl.ord = 5;  // we offered 4
  EXPECT_TRUE(a.received(rep.ctl, rep.bytes.size(), now).ok());
  EXPECT_EQ(a.failure(), Failure::bad_parameters);
  const Said rej = one(a, CtlType::rej);
  EXPECT_EQ(rej.ctl.token, SessionToken{0xb2});
  hear(b, rej);
  EXPECT_EQ(b.failure(), Failure::rejected);
}

TEST_F(HandshakeTest, ACriticalTlvThatNobodyKnowsIsRefused) {
  connect();
  request(one(a, CtlType::req));
  b.accept(passive_offer(), now);
  Said rep = one(b, CtlType::rep);
  Buffer tlv(8);
  wire::WdpTlv{.type = 5, .critical = true, .value = Bytes{tlv}.first(0)}.encode(tlv.data());
  rep.ctl.tlvs = Bytes{tlv}.first(4);
  EXPECT_TRUE(a.received(rep.ctl, rep.bytes.size(), now).ok());
  EXPECT_EQ(one(a, CtlType::rej).ctl.reason, static_cast<uint32_t>(RejReason::critical_tlv));
}

}  // namespace
}  // namespace weft::wdp
