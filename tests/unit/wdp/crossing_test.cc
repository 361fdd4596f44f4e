// Two queue pairs that call each other (spec/wdp 4.6).

#include "tests/unit/wdp/handshake_fixture.h"

namespace weft::wdp {
namespace {

struct CrossingTest : HandshakeTest {
  Offer offer(bool first) {
    Offer o = first ? active_offer() : passive_offer();
    o.private_data.clear();
    return o;
  }
};

// spec/wdp 4.6: lower one proceeds, other side drops its own REQ and answers.
TEST_F(CrossingTest, TheLowerQueuePairsRequestWins) {
  const Endpoint at_b{Gid::from_ipv4(0x0a000002), 40000};
  a.connect(offer(true), {.to = at_b}, make_qpn(40000, 5), true, now);
  b.connect(offer(false), {.to = kActive}, make_qpn(50000, 9), true, now);
  const Said from_a = one(a, CtlType::req);
  const Said from_b = one(b, CtlType::req);
  EXPECT_TRUE(from_a.ctl.ib_style);
  EXPECT_EQ(from_a.ctl.didx, 5);
  // b has the lower QPN.
  hear(b, from_a);
  EXPECT_EQ(b.state(), Handshake::State::req_sent);
  EXPECT_FALSE(b.ready());
  hear(a, from_b);
  EXPECT_EQ(a.state(), Handshake::State::rep_sent);
  const Said rep = one(a, CtlType::rep);
  EXPECT_EQ(rep.ctl.source_token, from_a.ctl.source_token);
  hear(b, rep);
  EXPECT_EQ(b.state(), Handshake::State::established);
  hear(a, one(b, CtlType::rtu));
  EXPECT_EQ(a.state(), Handshake::State::established);
  EXPECT_EQ(a.parameters().peer_token, SessionToken{0xb2});
  EXPECT_EQ(b.parameters().peer_token, SessionToken{0xa1});
  EXPECT_FALSE(a.parameters().from_listener);
  EXPECT_EQ(b.parameters().peer_index(), 9);
}

TEST_F(CrossingTest, AStrangersReqMeansNothing) {
  a.connect(offer(true), {.to = kPassive}, make_qpn(40000, 5), true, now);
  (void)one(a, CtlType::req);
  Offer stranger = offer(false);
  stranger.own_qpn = make_qpn(40000, 6);
  b.connect(stranger, {.to = kActive}, make_qpn(50000, 9), true, now);
  hear(a, one(b, CtlType::req));
  EXPECT_EQ(a.state(), Handshake::State::req_sent);
}

}  // namespace
}  // namespace weft::wdp
