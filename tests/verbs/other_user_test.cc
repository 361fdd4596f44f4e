// Peers on one host, and users who are none: which queue pair waits for which peer is no secret
// there (docs/security.md, "Another user of this host").

#include "tests/support/as_user.h"
#include "tests/support/counted.h"
#include "tests/verbs/own_process.h"
#include "tests/verbs/raw_datagrams.h"
#include "tests/verbs/raw_target.h"

namespace weft::test {
namespace {

using wire::MpaStart;
using wire::Wfrc;
constexpr size_t kBlock = MpaStart::kSize + wire::MpaEnhanced::kSize;

class OtherUser : public HostilePeer {
 protected:
  void SetUp() override {
    if (!many_users()) GTEST_SKIP() << "only root can be several users";
    HostilePeer::SetUp();
  }
  void TearDown() override {
    if (!IsSkipped()) HostilePeer::TearDown();
  }
};

// What `user` hears who calls as queue pair `peer`.
std::optional<Wfrc> answer_to(Target& t, const QpPtr& q, uid_t user, uint32_t peer) {
  std::optional<Wfrc> block;
  as_user(user, [&] {
    RawPeer caller = t.dial(q);
    caller.says(request_frame(t.gid, peer, q->qp_num, ++t.nonce));
    const Buffer reply = caller.hears(kBlock + Wfrc::kSize);
    if (reply.size() >= kBlock) block = Wfrc::parse(Bytes{reply}.subspan(kBlock));
  });
  return block;
}

void expect_refused(const std::optional<Wfrc>& block) {
  ASSERT_TRUE(block);
  EXPECT_EQ(block->code, Wfrc::Code::not_your_peer);
}

// The peer of this number is not there, so nobody else can be it.
TEST_F(OtherUser, may_not_call_as_a_peer_that_is_not_there) {
  const Counted refusals("bring_up_refused");
  const QpPtr q = t.waiting_qp();
  expect_refused(answer_to(t, q, kSomeUser, kPeerQpn));
  expect_refused(answer_to(t, q, kOtherUser, kPeerQpn));
  refusals.expect({{"other_user", 2}});
  t.open(q);  // the peer itself, of this user
  t.expect_untouched();
}

// Two users can have a connection: each queue pair's port is its user's.
TEST_F(OtherUser, may_call_as_itself_alone) {
  const Counted refusals("bring_up_refused");
  std::optional<RawListener> port;
  as_user(kSomeUser, [&] { port.emplace(t.gid, RawListener::kLow); });
  const uint32_t theirs = static_cast<uint32_t>(port->port()) << 8 | 9;
  const QpPtr q = t.qp();
  to_rtr(q.get(), theirs, t.gid, {.reads = kSomeReads});
  expect_refused(answer_to(t, q, kOtherUser, theirs));
  refusals.expect({{"other_user", 1}});
  const auto block = answer_to(t, q, kSomeUser, theirs);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->code, Wfrc::Code::ok);
  refusals.expect({{"other_user", 1}});
  t.expect_untouched();
}

// A Request that came before the queue pair knew its peer is looked at as closely.
TEST_F(OtherUser, gains_nothing_by_calling_early) {
  const Counted refusals("bring_up_refused");
  const QpPtr q = t.qp();
  std::optional<RawPeer> early;
  as_user(kSomeUser, [&] {
    early.emplace(t.dial(q));
    early->says(t.request(q));
  });
  to_rtr(q.get(), kPeerQpn, t.gid, {.reads = kSomeReads});
  const auto reply = early->hears_the_end();
  ASSERT_TRUE(reply);
  ASSERT_GE(reply->size(), kBlock);
  expect_refused(Wfrc::parse(Bytes{*reply}.subspan(kBlock)));
  refusals.expect({{"other_user", 1}});
  t.expect_untouched();
}

TEST(AnyUser, may_call_where_the_address_is_all_that_counts) {
  if (!many_users()) GTEST_SKIP() << "only root can be several users";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(with({{"WEFT_PEER_CHECK", "address"}},
                   [] {
                     Target own;
                     const QpPtr q = own.waiting_qp();
                     const auto block = answer_to(own, q, kSomeUser, kPeerQpn);
                     check(block && block->code == Wfrc::Code::ok, "refused");
                   }),
              testing::ExitedWithCode(0), "");
}

// --- UC: the socket of the port in the number calls, and nobody else has that port

struct UcTarget {
  Adapter adapter;
  ibv_gid gid = own_gid(adapter);
  CqPtr cq = adapter.cq(16);
  QpPtr qp = make_qp(adapter, cq.get(), {.type = IBV_QPT_UC});
};

// `caller` calls as queue pair `as`; its answer.
wire::WdpCtl call_as(RawDatagrams& caller, Qpn as, const UcTarget& t) {
  const Qpn number{t.qp->qp_num};
  wire::WdpCtl req = caller.message(wire::CtlType::req, number);
  req.source = as;
  req.sidx = index_of(as);
  req.ib_style = true;
  caller.say(req, SocketAddress{t.gid, port_of(number)}.storage);
  for (;;) {
    const auto heard = caller.hear();
    check(heard.has_value(), "no answer");
    for (const auto type : {wire::CtlType::rep, wire::CtlType::rej}) {
      if (const auto c = heard->ctl(type)) return *c;
    }
  }
}

TEST(OtherPort, may_not_call_as_a_peer_of_uc) {
  UcTarget t;
  RawDatagrams peer(t.gid, RawDatagrams::kLow);
  RawDatagrams other(t.gid, RawDatagrams::kLow);
  to_rtr(t.qp.get(), peer.qpn().value(), t.gid);
  const auto no = call_as(other, peer.qpn(), t);
  EXPECT_EQ(no.type, wire::CtlType::rej);
  EXPECT_EQ(no.reason, static_cast<uint32_t>(wire::RejReason::bad_parameters));
  EXPECT_EQ(call_as(peer, peer.qpn(), t).type, wire::CtlType::rep);
}

TEST(OtherPort, may_call_where_the_address_is_all_that_counts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(with({{"WEFT_PEER_CHECK", "address"}},
                   [] {
                     UcTarget t;
                     RawDatagrams peer(t.gid, RawDatagrams::kLow);
                     RawDatagrams other(t.gid, RawDatagrams::kLow);
                     to_rtr(t.qp.get(), peer.qpn().value(), t.gid);
                     check(call_as(other, peer.qpn(), t).type == wire::CtlType::rep, "refused");
                   }),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
