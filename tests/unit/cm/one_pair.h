// A queue pair of this process, on a device whose only address is that of loopback.
#pragma once

#include <gtest/gtest.h>

#include "cm/core.h"
#include "cm/datagram_id.h"
#include "device/device.h"
#include "verbs/context.h"
#include "verbs/queue_pair.h"

namespace weft::cm {

inline constexpr Gid kHere = Gid::from_ipv4(0x7f000001);

inline device::Device one_address() {
  device::Device d;
  d.gids.push_back({.gid = kHere, .interface = "lo"});
  return d;
}

// In RESET.
class OnePair {
 public:
  explicit OnePair(verbs::QpType type)
      : here(**adapter(), one_address()),
        type_(type),
        pd_(here),
        cq_(here, 16, nullptr, nullptr, false) {
    verbs::QpInit init{
        .context = &here,
        .pd = &pd_,
        .send_cq = &cq_,
        .recv_cq = &cq_,
        .type = type,
        .limits = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    auto made = verbs::QueuePair::create(init);
    EXPECT_TRUE(made.ok());
    qp_ = std::move(*made);
  }
  verbs::QueuePair& qp() { return *qp_; }
  engine::Engine& engine() { return qp_->engine(); }
  engine::Hold hold() { return engine().hold(); }
  void to_init() {
    using namespace verbs::qp_mask;
    const verbs::QpAttributes a{
        .state = verbs::QpState::init, .qkey = kDefaultQKey.value(), .port = device::kPort};
    ASSERT_TRUE(
        qp_->modify(a, kState | kPkeyIndex | kPort | (type_ == verbs::QpType::ud ? kQkey : kAccess))
            .ok());
  }
  // Of RC and UC. Its peer is `peer`, on this host.
  void to_rtr(Qpn peer) { ASSERT_TRUE(try_rtr(peer).ok()); }
  verbs::Outcome<Ok> try_rtr(Qpn peer) {
    using namespace verbs::qp_mask;
    const verbs::QpAttributes a{.state = verbs::QpState::rtr,
                                .path_mtu = 3,
                                .dest_qpn = peer,
                                .av = {.global = true, .dgid = kHere, .port = device::kPort}};
    return qp_->modify(a, kState | kAv | kPathMtu | kDestQpn | kRqPsn |
                              (type_ == verbs::QpType::rc ? kMaxDestRdAtomic | kMinRnrTimer : 0));
  }

  verbs::Context here;

 private:
  const verbs::QpType type_;
  verbs::ProtectionDomain pd_;
  verbs::CompletionQueue cq_;
  std::unique_ptr<verbs::QueuePair> qp_;
};

}  // namespace weft::cm
