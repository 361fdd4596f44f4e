// Whose calls a UC queue pair takes. How two of them come together is asked in
// tests/verbs/uc/bring_up_test.cc.

#include "cm/uc_bring_up.h"

#include <gtest/gtest.h>

#include "cm/core.h"
#include "config/options.h"
#include "device/device.h"
#include "drive/uc_link.h"

namespace weft::cm {
namespace {

using verbs::QpState;
using wire::RejReason;

constexpr Gid kHere = Gid::from_ipv4(0x7f000001);
constexpr uint16_t kPeerPort = 40000;
const Qpn kPeer = make_qpn(kPeerPort, 5);

device::Device one_address() {
  device::Device d;
  d.gids.push_back({.gid = kHere, .interface = "lo"});
  return d;
}

// Where the bring-up by number has no part: it may begin one here, which nobody looks after.
struct Owner final : PairBringUpOwner {
  void bring_up_begun(verbs::QueuePair&, PairBringUp& b) override { begun = &b; }
  void bring_up_over(verbs::QueuePair&, uint64_t) override { begun = nullptr; }
  PairBringUp* begun = nullptr;
};

class UcBringUpTest : public testing::Test {
 protected:
  UcBringUpTest()
      : here_(**adapter(), one_address()), pd_(here_), cq_(here_, 16, nullptr, nullptr, false) {
    verbs::QpInit init{
        .context = &here_,
        .pd = &pd_,
        .send_cq = &cq_,
        .recv_cq = &cq_,
        .type = verbs::QpType::uc,
        .limits = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    auto qp = verbs::QueuePair::create(init);
    EXPECT_TRUE(qp.ok());
    qp_ = std::move(*qp);
    to_init();
  }
  ~UcBringUpTest() override {
    auto h = qp_->engine().hold();
    if (owner_.begun != nullptr) owner_.begun->cancel(h.token());
  }
  void to_init() {
    using namespace verbs::qp_mask;
    const verbs::QpAttributes a{.state = QpState::init, .port = device::kPort};
    ASSERT_TRUE(qp_->modify(a, kState | kPkeyIndex | kPort | kAccess).ok());
  }
  // Its peer is kPeer, on this host. The adapter's own bring-up begins with this.
  void to_rtr() {
    using namespace verbs::qp_mask;
    const verbs::QpAttributes a{.state = QpState::rtr,
                                .path_mtu = 3,
                                .dest_qpn = kPeer,
                                .av = {.global = true, .dgid = kHere, .port = device::kPort}};
    ASSERT_TRUE(qp_->modify(a, kState | kAv | kPathMtu | kDestQpn | kRqPsn).ok());
  }
  Result<wdp::WdpSocketOwner::Callee, RejReason> called(Qpn source, const wdp::Endpoint& from,
                                                        bool trying = true) {
    auto h = qp_->engine().hold();
    const wire::WdpCtl req{.type = wire::CtlType::req, .source = source};
    return UcBringUp::called(h.token(), owner_, *qp_, trying, req, from);
  }
  void expect_refused(RejReason why, Qpn source = kPeer,
                      const wdp::Endpoint& from = {kHere, kPeerPort}) {
    const auto c = called(source, from);
    ASSERT_FALSE(c.ok());
    EXPECT_EQ(c.error(), why);
  }

  verbs::Context here_;
  verbs::ProtectionDomain pd_;
  verbs::CompletionQueue cq_;
  std::unique_ptr<verbs::QueuePair> qp_;
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
  EXPECT_EQ(c->offer.own_qpn, qp_->number());
  EXPECT_EQ(c->offer.ird, device::kMaxReads);
  const auto h = qp_->engine().hold();
  EXPECT_EQ(&qp_->transport().datagram_caller()->link()->connection(), c->connection);
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
    auto h = qp_->engine().hold();
    qp_->set_cm_managed(h.token());
  }
  expect_refused(RejReason::qpn_unknown);
}

TEST_F(UcBringUpTest, InErrorItIsTooLate) {
  to_rtr();
  ASSERT_TRUE(qp_->modify({.state = QpState::err}, verbs::qp_mask::kState).ok());
  expect_refused(RejReason::bad_parameters);
}

// A peer that was lost and begins anew is awaited by a bring-up of its own.
TEST_F(UcBringUpTest, WhoCallsWhileNobodyTriesBeginsABringUp) {
  to_rtr();
  {
    auto h = qp_->engine().hold();
    qp_->adapter().bring_up()->abandon(h.token(), *qp_);
    qp_->transport().drop(h.token(), false);
    ASSERT_EQ(qp_->observer(), nullptr);
  }
  ASSERT_TRUE(called(kPeer, {kHere, kPeerPort}, false).ok());
  const auto h = qp_->engine().hold();
  EXPECT_NE(owner_.begun, nullptr);
  EXPECT_NE(qp_->observer(), nullptr);
}

}  // namespace
}  // namespace weft::cm
