// A connection and its queue pair: how they come together, and how they part.
#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "cm/connection_id.h"
#include "cm/stream_settings.h"
#include "config/options.h"
#include "device/device.h"
#include "verbs/context.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using verbs::QpState;
namespace mask = verbs::qp_mask;

// InfiniBand's rdma_cm says TIMEWAIT_EXIT when the queue pair's number may be used again. Some
// programs free a connection only then. TCP needs no such pause; this is the one that weft gives
// its numbers (spec/addressing 2). iWARP has no such event.
constexpr Duration kTimeWait = 2s;

// What rdma_cm uses where the program says nothing: the ack timeout of Ethernet, 4.096 us * 2^18.
constexpr uint8_t kAckTimeout = 18;
// For ever. The program's rnr_retry_count is about the peer's sends, and MPA has no field that
// would carry it there; a peer that is slow to post receives is better waited for than given up.
constexpr uint8_t kRnrRetry = 7;

}  // namespace

using engine::Token;

mpa::Offer ConnectionId::offer() const {
  const config::Options& o = config::options();
  return {.crc = o.crc,
          .extension = o.ext != config::Extensions::off,
          .peer_to_peer = o.p2p,
          .ird = parameters_.responder_resources,
          .ord = parameters_.initiator_depth};
}

void ConnectionId::negotiated(uint32_t ird, uint32_t ord) {
  parameters_.responder_resources = static_cast<uint8_t>(std::min(ird, device::kMaxReads));
  parameters_.initiator_depth = static_cast<uint8_t>(std::min(ord, device::kMaxReads));
}

// --- the queue pair's way to RTS

// With what the type of the queue pair has to have set, and nothing else.
void ConnectionId::fill_attributes(QpState state, const verbs::QpTypeTraits& traits,
                                   verbs::QpAttributes& a, uint32_t& m) const {
  a.state = state;
  switch (state) {
    case QpState::init:
      a.port = device::kPort;
      a.pkey_index = 0;
      a.access =
          verbs::access::kRemoteWrite | verbs::access::kRemoteRead | verbs::access::kRemoteAtomic;
      m = mask::kState | traits.find(QpState::reset, state)->required;
      return;
    case QpState::rtr:
      a.av = vector_to(destination_.gid());
      a.path_mtu = static_cast<uint8_t>(device_->device().port.active_mtu);
      // Not on the wire. No queue pair has the number 0: the bring-up by number leaves such a pair
      // alone.
      a.dest_qpn = Qpn{};
      a.rq_psn = 0;
      a.max_dest_rd_atomic = parameters_.responder_resources;
      a.min_rnr_timer = 0;
      m = mask::kState | traits.find(QpState::init, state)->required;
      return;
    default:
      a.timeout = ack_timeout_.value_or(kAckTimeout);
      a.retry_cnt = std::min<uint8_t>(parameters_.retry_count, 7);
      a.rnr_retry = kRnrRetry;
      a.sq_psn = 0;
      a.max_rd_atomic = parameters_.initiator_depth;
      m = mask::kState | traits.find(QpState::rtr, QpState::rts)->required;
  }
}

int ConnectionId::queue_pair_attributes(QpState state, verbs::QpType type,
                                        verbs::QpAttributes& attributes, uint32_t& m) const {
  if (!alive()) return EIO;
  const auto h = hold_home();
  if (device_ == nullptr) return on_no_device("rdma_init_qp_attr");
  if (state != QpState::init && state != QpState::rtr && state != QpState::rts) return EINVAL;
  // Who the peer is, and what it can do, is known from its first word on.
  const bool met = state_ == IdState::requested || state_ == IdState::deserted ||
                   state_ == IdState::responded || state_ == IdState::accepting ||
                   state_ == IdState::connected;
  if (state != QpState::init && !met) {
    WEFT_LOG_REFUSAL("rdma_init_qp_attr: the id is %s: for RTR and RTS it has to know its peer",
                     to_string(state_));
    return EINVAL;
  }
  const verbs::QpTypeTraits* traits =
      program_leads_ && pair_ != nullptr ? &pair_->traits() : verbs::find_type(type);
  if (traits == nullptr) return EINVAL;
  fill_attributes(state, *traits, attributes, m);
  return 0;
}

// Before there is a connection: what the program posts waits for it.
bool ConnectionId::ready_pair(verbs::QueuePair& pair) const {
  if (pair.traits().addressed) {
    WEFT_LOG_REFUSAL("queue pair 0x%06x: it is %s, and connects by an id of RDMA_PS_UDP",
                     pair.number().value(), pair.traits().name);
    return false;
  }
  if (device_ == nullptr || pair.state() == QpState::reset || pair.state() == QpState::err) {
    WEFT_LOG_REFUSAL("queue pair 0x%06x: to be connected it has to be in INIT, and not in %s",
                     pair.number().value(), pair.state() == QpState::err ? "ERR" : "RESET");
    return false;
  }
  {
    auto h = pair.engine().hold();
    pair.set_cm_managed(h.token());
  }
  for (const QpState state : {QpState::rtr, QpState::rts}) {
    if (pair.state() >= state) continue;
    verbs::QpAttributes a;
    uint32_t m = 0;
    fill_attributes(state, pair.traits(), a, m);
    if (!pair.modify(a, m).ok()) return false;
  }
  return true;
}

engine::Engine& ConnectionId::engine_for(verbs::QueuePair* pair, Qpn qpn) const {
  if (pair != nullptr) return pair->engine();
  engine::Engine* e = qpn != Qpn{} ? adapter_.engine_of(qpn) : nullptr;
  return e != nullptr ? *e : *home_.load(std::memory_order_acquire);
}

// The queue pair that the program sees to itself, if the connection is for one: some programs name
// a number only to have one.
verbs::QueuePair* ConnectionId::program_pair(Token& token, Qpn qpn, Way way) const {
  verbs::QueuePair* pair = adapter_.find(token, qpn);
  if (pair == nullptr || pair->connected() || pair->state() == QpState::reset ||
      pair->state() == QpState::err) {
    return nullptr;
  }
  const bool fits = way == Way::stream ? pair->transport().stream_adopter() != nullptr
                                       : caller_of(*pair) != nullptr;
  return fits ? pair : nullptr;
}

// --- together

void ConnectionId::join(Token& token, verbs::QueuePair* pair, Started&& started, bool initiator) {
  if (type_of_service_) started.tcp.set_type_of_service(*type_of_service_);
  if (pair == nullptr) {
    token.runtime().guard(
        token,
        [&] { parked_connection_ = &ParkedConnection::start(token, *this, std::move(started)); },
        [&] { parked_connection_lost(token); });
    return;
  }
  pair_ = pair;
  pair->set_cm_managed(token);
  pair->observe(token, this);
  if (auto* adopter = pair->transport().stream_adopter()) {
    adopter->adopt(token, {.tcp = std::move(started.tcp),
                           .config = stream_settings(started.parameters, initiator),
                           .early = started.early});
  } else {
    pair->fail_connection(token, verbs::Status::local_qp_operation);
  }
}

void ConnectionId::release_pair(Token& token) {
  if (pair_ != nullptr) std::exchange(pair_, nullptr)->observe(token, nullptr);
}

// --- and apart

int ConnectionId::disconnect() {
  if (!alive()) return EIO;
  auto h = hold_home();
  Token& token = h.token();
  if (!can(Step::disconnect)) return wrong_state(Step::disconnect);
  switch (state_) {
    case IdState::accepting:
    case IdState::connecting:
      cancel_active_start(token);
      fail_connect(token, EventKind::connect_error, -ECONNABORTED);
      return 0;
    case IdState::connected:
    case IdState::responded:
      take(Step::disconnect);
      set_under_way(true);
      if (parked_connection_ != nullptr) {
        std::exchange(parked_connection_, nullptr)->close(token);
        ended(token);
      } else if (pair_ != nullptr) {
        pair_->disconnect(token);
        // A pair that had no connection any more says nothing.
        if (state_ == IdState::closing && !pair_->connected()) ended(token);
      } else {
        ended(token);
      }
      return 0;
    default:
      return 0;  // it is over, or will be
  }
}

void ConnectionId::ended(Token& token) {
  take(Step::stream_ended);
  set_under_way(false);
  release_pair(token);
  report(token, EventKind::disconnected);
  if (config::options().identity != config::Identity::iwarp) {
    token.runtime().set_deadline(token, *this, token.now() + kTimeWait);
  }
}

void ConnectionId::stream_ended(Token& token, const rdmap::StreamEnd&) {
  if (can(Step::stream_ended)) {
    ended(token);
  } else if (on_its_way()) {
    fail_connect(token, EventKind::unreachable, -ENOMEM);  // or else the call had failed
  }
}

void ConnectionId::parked_connection_lost(Token& token) {
  parked_connection_ = nullptr;
  if (can(Step::stream_ended)) ended(token);
}

void ConnectionId::pair_gone(Token& token) {
  pair_ = nullptr;
  if (on_its_way()) {
    cancel_active_start(token);
    fail_connect(token, EventKind::connect_error, -ECONNABORTED);
  } else if (can(Step::stream_ended)) {
    ended(token);
  }
}

// No memory to connect again, to call over UC, or to answer such a call.
void ConnectionId::on_no_memory(Token& token) {
  if (on_its_way() && active_start_ == nullptr) {
    fail_connect(token, EventKind::unreachable, -ENOMEM);
  }
}

void ConnectionId::on_deadline(Token& token) {
  if (state_ == IdState::connecting) begin_active_start(token);
  if (state_ == IdState::closed) report(token, EventKind::timewait_exit);
}

}  // namespace weft::cm
