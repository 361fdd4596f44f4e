// Two UC queue pairs that know each other's number find each other (spec/addressing 6, 5.4).

#include <algorithm>

#include "base/log.h"
#include "config/options.h"
#include "verbs/uc_transport.h"

namespace weft::verbs {
namespace {

using wdp::UcConnection;
using wire::RejReason;

using namespace std::chrono_literals;
constexpr Duration kPassivePatience = 1s;  // spec/addressing 6.1

// Is this the peer's word for ever, unless its program changes its mind?
bool is_final(RejReason reason) {
  return reason != RejReason::not_ready && reason != RejReason::qpn_unknown &&
         reason != RejReason::no_resources;
}

}  // namespace

void UcTransport::changed(engine::Token& token, QpState from) {
  const QpState to = qp_.state();
  const QpAttributes& a = qp_.attributes();
  // With the number 0 it is rdma_cm that connects it.
  const bool ib_style = !qp_.cm_managed && a.dest_qpn != Qpn{};
  if (ib_style && to == QpState::rtr && from != to && link_ == nullptr) {
    if (config::options().uc == config::UcBringUp::none) {
      start_static(token);
    } else if (calls()) {
      call_peer(token);
    } else {
      wait_to_be_called(token);
    }
  }
  const bool open = link_ != nullptr && link_->connection().state() == UcConnection::State::open;
  if (ib_style && to == QpState::rts && from == QpState::rtr && !open && !peer_gone_) {
    times_.send_side_ready(token.now(), a);
    // A pause before the next call may be running, and is to end first.
    if (link_ != nullptr) {
      qp_.wake_at(token, times_.give_up_at());
    } else if (!calls() && token.now() < calls_from_) {
      qp_.wake_at(token, std::min(calls_from_, times_.give_up_at()));
    }
  }
  if (link_ == nullptr) return;
  if (auto* session = link_->connection().session()) {
    session->hold_requests(to == QpState::sqd);
    if (from == QpState::sqe) session->resume_requests();
  }
  link_->settle(token);
}

// spec/addressing 4: the side with the lower number does, or where both are equal that with the
// lower GID; a queue pair that is its own peer calls itself.
bool UcTransport::calls() const {
  const Qpn peer = qp_.attributes().dest_qpn;
  if (qp_.number() != peer) return qp_.number() < peer;
  const auto to = resolve(qp_.context(), qp_.attributes().av);
  return to && to->path.from <= to->path.to.address;
}

void UcTransport::call_peer(engine::Token& token) {
  const Qpn peer = qp_.attributes().dest_qpn;
  const auto to = resolve(qp_.context(), qp_.attributes().av);
  if (!to) return call_again(token);  // modify_qp has checked it
  driver_.set_interface(to->path.from, to->interface);
  const wdp::Path path = to->to(peer);
  qp_.wake_at(token, times_.give_up_at());
  if (peer == qp_.number() && path.from == path.to.address) return call_itself(token, path);
  call(token, driver_, offer(driver_, path), path, peer, true);
}

// spec/addressing 4: Fully equal = loopback to itself: there is nobody to shake hands with.
void UcTransport::call_itself(engine::Token& token, const wdp::Path& path) {
  const wdp::Offer o = offer(driver_, path);
  start_link(token, driver_);
  link_->start_session(token,
                       {.path = path,
                        .own_qpn = o.own_qpn,
                        .peer_qpn = o.own_qpn,
                        .first_psn = o.first_psn,
                        .peer_first_psn = o.first_psn,
                        .crc = o.features.data_crc,
                        .ird = o.ird,
                        .ord = o.ord,
                        .max_payload = o.max_payload,
                        .receive_buffer = o.receive_buffer,
                        .window = o.window},
                       path.to);
}

// spec/wdp-uc 6: nothing is exchanged. What InfiniBand has a program tell a UC
// queue pair is all there is: the token is the number of the queue pair that a datagram is for. The
// first PSN that comes is the first, whatever the attributes say, and the peer may send from any
// port.
void UcTransport::start_static(engine::Token& token) {
  const QpAttributes& a = qp_.attributes();
  const auto to = resolve(qp_.context(), a.av);
  if (!to) return give_up(token);
  driver_.set_interface(to->path.from, to->interface);
  const wdp::Path path = to->to(a.dest_qpn);
  start_link(token, driver_);
  link_->start_session(token,
                       {.path = path,
                        .peer_token = SessionToken{a.dest_qpn.value()},
                        .own_token = SessionToken{qp_.number().value()},
                        .own_qpn = qp_.number(),
                        .peer_qpn = a.dest_qpn,
                        .first_psn = Psn{static_cast<uint32_t>(driver_.random().next())},
                        .crc = config::options().datagram_crc,
                        .max_payload = datagram_room(qp_.context(), path),
                        .is_static = true},
                       {.address = path.to.address});
}

void UcTransport::on_deadline(engine::Token& token) {
  if (token.now() >= times_.give_up_at()) {
    give_up(token);
  } else if (link_ == nullptr && (calls() || token.now() >= calls_from_)) {
    call_peer(token);
  } else {
    qp_.wake_at(token, times_.give_up_at());
  }
}

void UcTransport::call_again(engine::Token& token) {
  qp_.wake_at(token, times_.next_try(token.now(), driver_.random().next()));
}

// spec/addressing 6.1: a passive side that sees nothing of its peer for a second calls, too: what
// stands between the two may let one of them begin alone. Where both call, on_request() of
// wdp::Handshake finds out who goes on.
void UcTransport::wait_to_be_called(engine::Token& token) {
  calls_from_ = token.now() + kPassivePatience;
  qp_.wake_at(token, std::min(calls_from_, times_.give_up_at()));
}

void UcTransport::call_failed(engine::Token& token) {
  const wdp::Handshake& h = *link_->connection().handshake();
  if (qp_.cm_managed) {
    if (qp_.observer() != nullptr) qp_.observer()->call_failed(token, h);
    return leave_link(token);
  }
  const bool called = h.active();
  const bool final = h.failure() == wdp::Handshake::Failure::bad_parameters ||
                     (h.failure() == wdp::Handshake::Failure::rejected &&
                      is_final(static_cast<RejReason>(h.peer().reason)));
  leave_link(token);
  // Whoever was called waits to be called again.
  if (!called) return wait_to_be_called(token);
  if (!final) {
    times_.not_refused_for_good();
  } else if (times_.refused_for_good(token.now())) {
    return give_up(token);
  }
  call_again(token);
}

void UcTransport::give_up(engine::Token& token) {
  WEFT_LOG(info, "queue pair 0x%06x: no UC connection to QPN 0x%06x; giving up",
           qp_.number().value(), qp_.attributes().dest_qpn.value());
  qp_.engine().counters().bring_ups_given_up.add();
  leave_link(token);
  qp_.fail_connection(token, Status::retry_exceeded);
}

Result<wdp::PortOwner::Callee, RejReason> UcTransport::called(engine::Token& token,
                                                              const wire::WdpCtl& req,
                                                              const wdp::Endpoint& from) {
  if (qp_.cm_managed) return fail(RejReason::qpn_unknown);
  if (qp_.state() == QpState::err) return fail(RejReason::bad_parameters);
  if (qp_.state() < QpState::rtr) return fail(RejReason::not_ready);
  const auto to = resolve(qp_.context(), qp_.attributes().av);
  if (!to || req.source != qp_.attributes().dest_qpn || from.address != to->path.to.address) {
    return fail(RejReason::bad_parameters);
  }
  // spec/addressing 6.2: the port in the number is bound as long as its process lives, and whoever
  // calls does so from there (spec/addressing 5.6). So no other user of the peer's host can call as
  // the peer.
  if (config::options().peer_check == config::PeerCheck::user && from.port != port_of(req.source)) {
    WEFT_LOG_REFUSAL(
        "queue pair 0x%06x: QPN 0x%06x calls from UDP port %u of %s, which is not in its number: "
        "refused; WEFT_PEER_CHECK=address allows it, for a network that translates ports",
        qp_.number().value(), req.source.value(), from.port, from.address.to_string().c_str());
    return fail(RejReason::bad_parameters);
  }
  if (link_ != nullptr) {
    UcConnection& own = link_->connection();
    if (own.state() == UcConnection::State::open) return fail(RejReason::not_ready);
    // Both call: the port finds out which one gives in.
    const bool calling = own.state() == UcConnection::State::setting_up &&
                         own.handshake() != nullptr && own.handshake()->active();
    if (calling) return wdp::PortOwner::Callee{&own, offer(driver_, to->path)};
    leave_link(token);
  }
  start_link(token, driver_);
  return wdp::PortOwner::Callee{&link_->connection(), offer(driver_, to->path)};
}

}  // namespace weft::verbs
