// Whose calls a UC queue pair takes. How two of them come together is asked in
// tests/verbs/uc/bring_up_test.cc.

#include "cm/uc_bring_up.h"

#include "config/options.h"
#include "drive/uc_link.h"
#include "tests/unit/cm/one_pair.h"

namespace weft::cm {
namespace {

using verbs::QpState;
using wire::RejReason;

constexpr uint16_t kPeerPort = 40000;
const Qpn kPeer = make_qpn(kPeerPort, 5);

// Where the bring-up by number has no part: it may begin one here, which nobody looks after.
struct Owner final : PairBringUpOwner {
  void bring_up_begun(verbs::QueuePair&, PairBringUp& b) override { begun = &b; }
  void bring_up_over(verbs::QueuePair&, uint64_t) override { begun = nullptr; }
  SilentPorts& silent_ports() override { return silent; }
  PairBringUp* begun = nullptr;
  SilentPorts silent;
};

class UcBringUpTest : public testing::Test {
 protected:
  UcBringUpTest() : pair_(verbs::QpType::uc) { pair_.to_init(); }
  ~UcBringUpTest() override {
    auto h = pair_.hold();
    if (owner_.begun != nullptr) owner_.begun->cancel(h.token());
  }
  // The adapter's own bring-up begins with this.
  void to_rtr() { pair_.to_rtr(kPeer); }
  Result<wdp::WdpSocketOwner::Callee, RejReason> called(Qpn source, const wdp::Endpoint& from,
                                                        bool trying = true) {
    auto h = pair_.hold();
    const wire::WdpCtl req{.type = wire::CtlType::req, .source = source};
    return UcBringUp::called(h.token(), owner_, pair_.qp(), trying, req, from);
  }
  void expect_refused(RejReason why, Qpn source = kPeer,
                      const wdp::Endpoint& from = {kHere, kPeerPort}) {
    const auto c = called(source, from);
    ASSERT_FALSE(c.ok());
    EXPECT_EQ(c.error(), why);
  }

  OnePair pair_;
  Owner owner_;
};

// spec/addressing 3: 8 where it does not know its peer yet, and may soon.
TEST_F(UcBringUpTest, WhoIsNotReadyMayBeLater) {
  expect_refused(RejReason::not_ready);
}

TEST_F(UcBringUpTest, ItsPeerIsTaken) {
  to_rtr();
  const auto c = called(kPeer, {kHere, kPeerPort});
  ASSERT_TRUE(c.ok());
  ASSERT_NE(c->connection, nullptr);
  EXPECT_EQ(c->offer.own_qpn, pair_.qp().number());
  EXPECT_EQ(c->offer.ird, device::kMaxReads);
  const auto h = pair_.hold();
  EXPECT_EQ(&pair_.qp().transport().datagram_caller()->link()->connection(), c->connection);
}

TEST_F(UcBringUpTest, NobodyElseIs) {
  to_rtr();
  expect_refused(RejReason::bad_parameters, make_qpn(kPeerPort, 6));
  expect_refused(RejReason::bad_parameters, kPeer, {Gid::from_ipv4(0x7f000002), kPeerPort});
}

// spec/addressing 6.2: the port in the number is the peer's as long as it lives.
TEST_F(UcBringUpTest, APeerCallsFromThePortInItsNumber) {
  ASSERT_EQ(config::options().peer_check, config::PeerCheck::user);
  to_rtr();
  expect_refused(RejReason::bad_parameters, kPeer, {kHere, kPeerPort + 1});
}

TEST_F(UcBringUpTest, WhatRdmaCmConnectsIsNotThere) {
  to_rtr();
  {
    auto h = pair_.hold();
    pair_.qp().set_cm_managed(h.token());
  }
  expect_refused(RejReason::qpn_unknown);
}

TEST_F(UcBringUpTest, InErrorItIsTooLate) {
  to_rtr();
  ASSERT_TRUE(pair_.qp().modify({.state = QpState::err}, verbs::qp_mask::kState).ok());
  expect_refused(RejReason::bad_parameters);
}

// A peer that was lost and begins anew is awaited by a bring-up of its own.
TEST_F(UcBringUpTest, WhoCallsWhileNobodyTriesBeginsABringUp) {
  to_rtr();
  {
    auto h = pair_.hold();
    pair_.qp().adapter().bring_up()->abandon(h.token(), pair_.qp());
    pair_.qp().transport().drop(h.token(), false);
    ASSERT_EQ(pair_.qp().observer(), nullptr);
  }
  ASSERT_TRUE(called(kPeer, {kHere, kPeerPort}, false).ok());
  const auto h = pair_.hold();
  EXPECT_NE(owner_.begun, nullptr);
  EXPECT_NE(pair_.qp().observer(), nullptr);
}

}  // namespace
}  // namespace weft::cm
