// Connections over datagrams (UC). The handshake is the queue pair's transport's (spec/wdp 4); here
// is what rdma_cm makes of it.
#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "cm/call_outcome.h"
#include "cm/connection_id.h"
#include "config/options.h"
#include "device/device.h"
#include "drive/uc_link.h"

namespace weft::cm {
namespace {

std::vector<std::byte> copy(Bytes b) {
  return {b.begin(), b.end()};
}

uint8_t reads(uint16_t told) {
  return static_cast<uint8_t>(std::min<uint32_t>(told, device::kMaxReads));
}

}  // namespace

using engine::Token;

wdp::Offer ConnectionId::datagram_offer(const drive::DatagramDriver& driver,
                                        const wdp::Path& path) const {
  wdp::Offer o = caller_of(*pair_)->offer(driver, path);
  o.traffic_class = type_of_service_.value_or(0);
  o.ird = parameters_.responder_resources;
  o.ord = parameters_.initiator_depth;
  o.private_data = parameters_.private_data;
  return o;
}

void ConnectionId::call(Token& token) {
  bound_.close();  // its datagrams go by the queue pair's own port
  bound_udp_.reset();
  verbs::DatagramCaller& caller = *caller_of(*pair_);
  const wdp::Path path{.to = {.address = destination_.gid(), .port = destination_.port()},
                       .from = source_.gid(),
                       .traffic_class = type_of_service_.value_or(0)};
  source_.set_port(port_of(pair_->number()));
  caller.driver().set_interface(path.from,
                                source_.scope() != 0 ? source_.scope() : destination_.scope());
  wdp::Offer offer = datagram_offer(caller.driver(), path);
  // The side that accepts has none to say: rdma_accept(3).
  offer.retry_count = std::min<uint8_t>(parameters_.retry_count, 7);
  // "dst QPN ... 0 = listener on that port"
  caller.call(token, caller.driver(), offer, path, Qpn{}, false);
}

// --- the side that is connected to

std::optional<wire::RejReason> ConnectionId::datagram_requested(Token& token,
                                                                const DatagramCall& call,
                                                                const wdp::Handshake& handshake) {
  if (crowded()) return wire::RejReason::no_resources;
  const wire::WdpCtl& req = handshake.peer();
  Made made = make_child(token);
  made->parameters_ = {.responder_resources = reads(req.ord), .initiator_depth = reads(req.ird)};
  const wdp::Path& path = handshake.path();
  begin_request(*made, port::Address::from_gid(path.from, source_.port(), source_.scope()),
                port::Address::from_gid(path.to.address, path.to.port, source_.scope()));
  made->call_ = call;
  if (!announce(token, *made, copy(req.private_data))) {
    stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::channel_gone);
    return wire::RejReason::application;
  }
  (void)made.release();
  return {};
}

// The session is on the listener's socket, so the queue pair has to be on the listener's engine.
void ConnectionId::prefer_home(bool on) const {
  if (!alive()) return;
  const auto h = hold_home();
  verbs::Adapter::prefer(on && call_ ? home_.load(std::memory_order_acquire) : nullptr);
}

int ConnectionId::accept_call(verbs::QueuePair* pair, const ConnectionParameters& parameters) {
  verbs::QueuePair* own = pair;
  if (own == nullptr) {
    auto h = hold_home();
    own = program_pair(h.token(), parameters.qpn, Way::datagrams);
  }
  if (own == nullptr || caller_of(*own) == nullptr || &own->engine() != home_.load()) {
    WEFT_LOG_REFUSAL(
        "rdma_accept: the peer asks for UC: give the id a UC queue pair by rdma_create_qp first");
    return EINVAL;
  }
  if (pair != nullptr && !ready_pair(*pair)) return EINVAL;
  auto h = hold_home();
  if (!can(Step::answer)) return wrong_state(Step::accept);
  parameters_ = parameters;
  pair_ = own;
  program_leads_ = pair == nullptr;
  pair_->set_cm_managed(h.token());
  pair_->observe(h.token(), this);
  take(Step::answer);
  set_under_way(true);
  const DatagramCall call = *std::exchange(call_, {});
  bool there = false;
  h.token().runtime().guard(
      h.token(),
      [&] {
        there = call.accept(h.token(), *caller_of(*pair_),
                            datagram_offer(call.listener->driver(), call.path));
      },
      [&] { call.reject(h.token(), wire::RejReason::no_resources, {}); });
  if (there) return 0;
  set_under_way(false);
  take(Step::failure);
  release_pair(h.token());
  own->fail_connection(h.token(), verbs::Status::flushed);
  return ECONNRESET;
}

// --- what becomes of it

// The peer's REP, or its RTU.
void ConnectionId::stream_ready(Token& token) {
  if (pair_ == nullptr || caller_of(*pair_) == nullptr || !on_its_way()) return;
  const wdp::UcConnection& c = caller_of(*pair_)->link()->connection();
  const wdp::UcParameters& agreed = c.session()->parameters();
  negotiated(agreed.ird, agreed.ord);
  ConnectionParameters told = parameters_;
  told.private_data.clear();
  told.qpn = agreed.peer_qpn;
  const bool active = state_ == IdState::connecting;
  if (active && c.handshake() != nullptr) {
    told.private_data = copy(c.handshake()->peer().private_data);
  }
  set_under_way(false);
  if (active && program_leads_) {
    take(Step::reply_for_program);
    report(token, EventKind::connect_response, 0, std::move(told));
  } else {
    take(Step::reply);
    report(token, EventKind::established, 0, std::move(told));
  }
}

void ConnectionId::call_failed(Token& token, const wdp::Handshake& handshake) {
  if (!on_its_way()) return;
  const FailureEvent e = uc_failure(handshake, config::options().identity);
  fail_connect(token, e.kind, e.status, copy(handshake.peer().private_data));
}

}  // namespace weft::cm
