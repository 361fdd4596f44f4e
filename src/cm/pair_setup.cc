#include "cm/pair_setup.h"

#include <algorithm>

#include "base/log.h"
#include "device/device.h"

namespace weft::cm {
namespace {

using verbs::QpState;
namespace mask = verbs::qp_mask;

// What rdma_cm uses where the program says nothing: the ack timeout of Ethernet, 4.096 us * 2^18.
constexpr uint8_t kAckTimeout = 18;
// For ever. The program's rnr_retry_count is about the peer's sends, and MPA has no field that
// would carry it there; a peer that is slow to post receives is better waited for than given up.
constexpr uint8_t kRnrRetry = 7;

}  // namespace

void fill_attributes(const PairSetup& setup, QpState state, const verbs::QpTypeTraits& traits,
                     verbs::QpAttributes& a, uint32_t& m) {
  const ConnectionParameters& p = setup.parameters;
  a.state = state;
  QpState from = QpState::rtr;
  switch (state) {
    case QpState::init:
      from = QpState::reset;
      a.port = device::kPort;
      a.pkey_index = 0;
      a.access =
          verbs::access::kRemoteWrite | verbs::access::kRemoteRead | verbs::access::kRemoteAtomic;
      break;
    case QpState::rtr:
      from = QpState::init;
      a.av = setup.to_peer;
      a.path_mtu = setup.path_mtu;
      // Not on the wire. No queue pair has the number 0: the bring-up by number leaves such a pair
      // alone.
      a.dest_qpn = Qpn{};
      a.rq_psn = 0;
      a.max_dest_rd_atomic = p.responder_resources;
      a.min_rnr_timer = 0;
      break;
    default:
      a.timeout = setup.ack_timeout.value_or(kAckTimeout);
      a.retry_cnt = std::min<uint8_t>(p.retry_count, 7);
      a.rnr_retry = kRnrRetry;
      a.sq_psn = 0;
      a.max_rd_atomic = p.initiator_depth;
  }
  m = mask::kState | traits.find(from, state)->required;
}

bool may_connect(const verbs::QueuePair& pair, bool on_device) {
  if (pair.traits().addressed) {
    WEFT_LOG_REFUSAL("queue pair 0x%06x: it is %s, and connects by an id of RDMA_PS_UDP",
                     pair.number().value(), pair.traits().name);
    return false;
  }
  if (!on_device || pair.state() == QpState::reset || pair.state() == QpState::err) {
    WEFT_LOG_REFUSAL("queue pair 0x%06x: to be connected it has to be in INIT, and not in %s",
                     pair.number().value(), pair.state() == QpState::err ? "ERR" : "RESET");
    return false;
  }
  return true;
}

bool bring_to_rts(verbs::QueuePair& pair, const PairSetup& setup) {
  {
    auto h = pair.engine().hold();
    pair.set_cm_managed(h.token());
  }
  for (const QpState state : {QpState::rtr, QpState::rts}) {
    if (pair.state() >= state) continue;
    verbs::QpAttributes a;
    uint32_t m = 0;
    fill_attributes(setup, state, pair.traits(), a, m);
    if (!pair.modify(a, m).ok()) return false;
  }
  return true;
}

verbs::DatagramCaller* caller_of(const verbs::QueuePair& pair) {
  return pair.transport().datagram_caller();
}

verbs::QueuePair* program_pair(verbs::Adapter& adapter, engine::Token& token, Qpn qpn,
                               Carrier carrier) {
  verbs::QueuePair* pair = adapter.ports().find(token, qpn);
  if (pair == nullptr || pair->connected() || pair->state() == QpState::reset ||
      pair->state() == QpState::err) {
    return nullptr;
  }
  const bool fits = carrier == Carrier::stream ? pair->transport().stream_adopter() != nullptr
                                               : caller_of(*pair) != nullptr;
  return fits ? pair : nullptr;
}

}  // namespace weft::cm
