// Queue pairs of one process, connected by hand.
#pragma once

#include "port/tcp_stream.h"
#include "tests/unit/verbs/fixture.h"

namespace weft::verbs {

inline const Gid kHere = Gid::from_ipv4(0x7f000001);

inline device::Device one_address() {
  device::Device d;
  d.gids.push_back({.gid = kHere, .interface = "lo"});
  return d;
}

class PairTest : public VerbsTest {
 protected:
  PairTest()
      : here(adapter(), one_address()), domain(here), cq(here, 4096, nullptr, nullptr, false) {}

  // With room for 64 sends of one segment and 8 receives of one.
  std::unique_ptr<QueuePair> make(QpType type = QpType::rc, SharedReceiveQueue* srq = nullptr) {
    QpInit init{
        .context = &here,
        .pd = &domain,
        .send_cq = &cq,
        .recv_cq = &cq,
        .srq = srq,
        .type = type,
        .limits = {.max_send_wr = 64, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
    auto qp = QueuePair::create(init);
    EXPECT_TRUE(qp.ok());
    return std::move(*qp);
  }
  static void to_rts(QueuePair& qp) {
    using namespace qp_mask;
    constexpr uint32_t kRights = access::kRemoteRead | access::kRemoteWrite | access::kRemoteAtomic;
    QpAttributes a{.access = kRights, .port = device::kPort};
    a.state = QpState::init;
    ASSERT_TRUE(qp.modify(a, kState | kPkeyIndex | kPort | kAccess).ok());
    a.state = QpState::rtr;
    a.path_mtu = 3;
    a.av = {.global = true, .dgid = kHere, .port = device::kPort};
    constexpr uint32_t kRtr =
        kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer;
    ASSERT_TRUE(qp.modify(a, kRtr).ok());
    a.state = QpState::rts;
    constexpr uint32_t kRts = kState | kTimeout | kRetryCnt | kRnrRetry | kSqPsn | kMaxQpRdAtomic;
    ASSERT_TRUE(qp.modify(a, kRts).ok());
  }
  // With itself.
  static void connect(QueuePair& qp) {
    auto h = qp.engine().hold();
    qp.transport().stream_adopter()->adopt(
        h.token(), {.loop = port::Address::from_gid(kHere, port_of(qp.number())),
                    .config = {.mpa = {.extension = true, .ird = 1, .ord = 1}, .initiator = true},
                    .early = {}});
  }

  Context here;
  ProtectionDomain domain;
  CompletionQueue cq;
};

}  // namespace weft::verbs
