// When a UD queue pair is found, and by which groups. Messages over sockets are in tests/verbs.

#include "verbs/ud_transport.h"

#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

class UdTransportTest : public PairTest {
 protected:
  UdTransportTest() : qp(make(QpType::ud)) {}
  void to(QpState state) {
    using namespace qp_mask;
    const QpAttributes a{.state = state, .qkey = 0x1234, .port = device::kPort};
    const uint32_t mask = state == QpState::init  ? kState | kPkeyIndex | kPort | kQkey
                          : state == QpState::rts ? kState | kSqPsn
                                                  : kState;
    ASSERT_TRUE(qp->modify(a, mask).ok());
  }
  bool is_found() {
    auto h = qp->engine().hold();
    return adapter()
        .ports()
        .datagrams(h.token(), qp->number())
        .wdp_socket()
        .demux()
        .find(qp->number())
        .ok();
  }

  std::unique_ptr<QueuePair> qp;
};

TEST_F(UdTransportTest, IsFoundFromRtrOnUntilItStops) {
  to(QpState::init);
  EXPECT_FALSE(is_found());
  to(QpState::rtr);
  EXPECT_TRUE(is_found());
  to(QpState::rts);
  to(QpState::err);
  EXPECT_FALSE(is_found());
  to(QpState::reset);
  to(QpState::init);
  to(QpState::rtr);
  EXPECT_TRUE(is_found());
}

TEST_F(UdTransportTest, AGroupIsJoinedOnceAndLeftOnce) {
  to(QpState::init);
  const auto not_a_group = qp->attach_multicast(kHere);
  ASSERT_FALSE(not_a_group.ok());
  EXPECT_EQ(not_a_group.error(), Errc::invalid);
  const Gid group = Gid::from_ipv4(0xefff4d07);
  ASSERT_TRUE(qp->attach_multicast(group).ok());
  EXPECT_TRUE(qp->attach_multicast(group).ok()) << "once more is as good as once";
  EXPECT_TRUE(qp->detach_multicast(group).ok());
  EXPECT_FALSE(qp->detach_multicast(group).ok());
}

}  // namespace
}  // namespace weft::verbs
