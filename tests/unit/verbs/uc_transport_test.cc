// Two queue pairs of one process in a session without a handshake. Handshakes and losses are in
// tests/verbs.

#include "verbs/uc_transport.h"

#include "tests/unit/verbs/pair_fixture.h"
#include "verbs/send_posting.h"

namespace weft::verbs {
namespace {

class UcTransportTest : public PairTest {
 protected:
  UcTransportTest() : a(make(QpType::uc)), b(make(QpType::uc)) {
    to_rts(*a);
    to_rts(*b);
  }
  static void to_rts(QueuePair& qp) {
    using namespace qp_mask;
    QpAttributes q{.state = QpState::init, .access = access::kRemoteWrite, .port = device::kPort};
    ASSERT_TRUE(qp.modify(q, kState | kPkeyIndex | kPort | kAccess).ok());
    q.state = QpState::rtr;
    q.path_mtu = 3;
    q.av = {.global = true, .dgid = kHere, .port = device::kPort};
    ASSERT_TRUE(qp.modify(q, kState | kAv | kPathMtu | kDestQpn | kRqPsn).ok());
    q.state = QpState::rts;
    ASSERT_TRUE(qp.modify(q, kState | kSqPsn).ok());
  }
  // spec/wdp-uc 6.
  static void adopt(QueuePair& own, const QueuePair& peer) {
    const wdp::Path path{.to = {.address = kHere, .port = port_of(peer.number())}, .from = kHere};
    auto h = own.engine().hold();
    own.transport().datagram_caller()->adopt(h.token(),
                                             {.path = path,
                                              .peer_token = SessionToken{peer.number().value()},
                                              .own_token = SessionToken{own.number().value()},
                                              .own_qpn = own.number(),
                                              .peer_qpn = peer.number(),
                                              .first_psn = Psn{77},
                                              .is_static = true},
                                             {.address = kHere});
  }
  Region* registered(Buffer& of) {
    auto r = adapter().memory().add(domain, of.data(), of.size(),
                                    reinterpret_cast<uintptr_t>(of.data()), access::kLocalWrite);
    return r.ok() ? *r : nullptr;
  }
  void send(const Region& from) {
    const LocalSegment s = segment(from);
    SendPosting posting{*a};
    ASSERT_TRUE(posting
                    .add({.wr_id = 7,
                          .operation = work::Operation::send,
                          .signaled = true,
                          .segments = &s,
                          .count = 1})
                    .ok());
    posting.commit();
  }
  void receive(const Region& into) {
    const LocalSegment s = segment(into);
    const ReceiveRequest r{.wr_id = 8, .segments = &s, .count = 1};
    size_t posted = 0;
    ASSERT_TRUE(b->post_receive(&r, 1, posted).ok());
  }
  static bool connected(QueuePair& qp) {
    const auto h = qp.engine().hold();
    return qp.connected();
  }

  std::unique_ptr<QueuePair> a;
  std::unique_ptr<QueuePair> b;
  Buffer out = pattern(3000, 5);
  Buffer in = Buffer(3000);
};

TEST_F(UcTransportTest, ASendThatWasPostedBeforehandGoesOut) {
  Region* const from = registered(out);
  Region* const into = registered(in);
  ASSERT_TRUE(from != nullptr && into != nullptr);
  receive(*into);
  send(*from);
  for (int i = 0; i < 100; ++i) adapter().progress();
  Completion none;
  EXPECT_EQ(cq.poll({&none, 1}), 0U) << "there is no connection";
  adopt(*b, *a);
  adopt(*a, *b);
  const auto all = poll(cq, 2);
  for (const Completion& c : all) EXPECT_EQ(c.status, Status::success) << c.wr_id;
  EXPECT_EQ(in, out);
}

TEST_F(UcTransportTest, IsConnectedUntilTheQueuePairStops) {
  EXPECT_FALSE(connected(*a));
  adopt(*a, *b);
  EXPECT_TRUE(connected(*a));
  ASSERT_TRUE(a->modify({.state = QpState::err}, qp_mask::kState).ok());
  EXPECT_FALSE(connected(*a));
}

// A second session takes the place of the first.
TEST_F(UcTransportTest, WhoExpectsACallLeavesTheConnectionThatThereWas) {
  adopt(*a, *b);
  auto h = a->engine().hold();
  DatagramCaller& caller = *a->transport().datagram_caller();
  drive::UcLink* const before = caller.link();
  const wdp::UcConnection& waits = caller.expect_call(h.token());
  EXPECT_NE(caller.link(), before);
  EXPECT_EQ(&caller.link()->connection(), &waits);
  EXPECT_EQ(waits.state(), wdp::UcConnection::State::setting_up);
}

}  // namespace
}  // namespace weft::verbs
