#include "cm/uc_bring_up.h"

#include <algorithm>

#include "base/log.h"
#include "config/options.h"
#include "drive/uc_link.h"
#include "verbs/address_handle.h"

namespace weft::cm {
namespace {

using engine::Token;
using verbs::QpState;
using wdp::UcConnection;
using wire::RejReason;

// Is this the peer's word for ever, unless its program changes its mind?
bool is_final(RejReason reason) {
  return reason != RejReason::not_ready && reason != RejReason::qpn_unknown &&
         reason != RejReason::no_resources;
}

std::optional<verbs::AddressHandle> peer_of(const verbs::QueuePair& qp) {
  return verbs::resolve(qp.context(), qp.attributes().av);
}

}  // namespace

UcBringUp& UcBringUp::add(Token& token, PairBringUpOwner& owner, verbs::QueuePair& pair) {
  auto owned = std::unique_ptr<UcBringUp>{new UcBringUp(owner, pair)};
  UcBringUp& b = *owned;
  token.runtime().add(token, std::move(owned), -1, false, false);
  owner.bring_up_begun(pair, b);
  pair.observe(token, &b);
  return b;
}

void UcBringUp::start(Token& token, PairBringUpOwner& owner, verbs::QueuePair& pair) {
  UcBringUp& b = add(token, owner, pair);
  if (config::options().uc == config::UcBringUp::none) {
    b.start_static(token);
  } else if (b.calls()) {
    b.call_peer(token);
  } else {
    b.wait_to_be_called(token);
  }
}

void UcBringUp::request_waits(Token& token) {
  if (!times_.give_up_at().is_never()) return;
  times_.request_waits(token.now(), qp_.attributes());
  // A pause before the next call may be running, and is to end first.
  if (caller_.link() != nullptr) {
    wake_at(token, times_.give_up_at());
  } else if (!calls() && token.now() < calls_from_) {
    wake_at(token, std::min(calls_from_, times_.give_up_at()));
  }
}

void UcBringUp::cancel(Token& token) {
  if (qp_.observer() == this) qp_.observe(token, nullptr);
  end(token);
}

bool UcBringUp::calls() const {
  const auto to = peer_of(qp_);
  return to && begins(to->path.from, to->path.to.address);
}

void UcBringUp::call_peer(Token& token) {
  const Qpn peer = qp_.attributes().dest_qpn;
  const auto to = peer_of(qp_);
  if (!to) return call_again(token);  // modify_qp has checked it
  drive::DatagramDriver& driver = caller_.driver();
  driver.set_interface(to->path.from, to->interface);
  const wdp::Path path = to->to(peer);
  wake_at(token, times_.give_up_at());
  if (peer == qp_.number() && path.from == path.to.address) return call_itself(token, path);
  caller_.call(token, driver, caller_.offer(driver, path), path, peer, true);
}

// spec/addressing 4: Fully equal = loopback to itself: there is nobody to shake hands with.
void UcBringUp::call_itself(Token& token, const wdp::Path& path) {
  const wdp::Offer o = caller_.offer(caller_.driver(), path);
  caller_.adopt(token,
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

// spec/wdp-uc 6: nothing is exchanged. What InfiniBand has a program tell a UC queue pair is all
// there is: the token is the number of the queue pair that a datagram is for. The first PSN that
// comes is the first, whatever the attributes say, and the peer may send from any port.
void UcBringUp::start_static(Token& token) {
  const verbs::QpAttributes& a = qp_.attributes();
  const auto to = peer_of(qp_);
  if (!to) return give_up(token);
  drive::DatagramDriver& driver = caller_.driver();
  driver.set_interface(to->path.from, to->interface);
  const wdp::Path path = to->to(a.dest_qpn);
  caller_.adopt(token,
                {.path = path,
                 .peer_token = SessionToken{a.dest_qpn.value()},
                 .own_token = SessionToken{qp_.number().value()},
                 .own_qpn = qp_.number(),
                 .peer_qpn = a.dest_qpn,
                 .first_psn = Psn{static_cast<uint32_t>(driver.random().next())},
                 .crc = config::options().datagram_crc,
                 .max_payload = verbs::datagram_room(qp_.context(), path),
                 .is_static = true},
                {.address = path.to.address});
}

void UcBringUp::on_deadline(Token& token) {
  // rdma_cm has taken the queue pair over.
  if (qp_.observer() != this) return end(token);
  if (token.now() >= times_.give_up_at()) {
    give_up(token);
  } else if (caller_.link() == nullptr && (calls() || token.now() >= calls_from_)) {
    call_peer(token);
  } else {
    wake_at(token, times_.give_up_at());
  }
}

void UcBringUp::call_again(Token& token) {
  wake_at(token, times_.next_try(token.now(), caller_.driver().random().next()));
}

// spec/addressing 6.1: a passive side that sees nothing of its peer for a second calls, too: what
// stands between the two may let one of them begin alone. Where both call, on_request() of
// wdp::Handshake finds out which of the two goes on.
void UcBringUp::wait_to_be_called(Token& token) {
  calls_from_ = token.now() + BringUpTimes::kPassivePatience;
  wake_at(token, std::min(calls_from_, times_.give_up_at()));
}

void UcBringUp::call_failed(Token& token, const wdp::Handshake& h) {
  // A side that was called waits to be called again.
  if (!h.active()) return wait_to_be_called(token);
  const bool final = h.failure() == wdp::Handshake::Failure::bad_parameters ||
                     (h.failure() == wdp::Handshake::Failure::rejected &&
                      is_final(static_cast<RejReason>(h.peer().reason)));
  if (!final) {
    times_.not_refused_for_good();
  } else if (times_.refused_for_good(token.now())) {
    return give_up(token);
  }
  call_again(token);
}

void UcBringUp::give_up(Token& token) {
  WEFT_LOG(info, "queue pair 0x%06x: no UC connection to QPN 0x%06x; giving up",
           qp_.number().value(), qp_.attributes().dest_qpn.value());
  token.runtime().counters().bring_ups_given_up.add();
  verbs::QueuePair& qp = qp_;
  cancel(token);
  qp.fail_connection(token, verbs::Status::retry_exceeded);
}

Result<wdp::WdpSocketOwner::Callee, RejReason> UcBringUp::called(
    Token& token, PairBringUpOwner& owner, verbs::QueuePair& pair, bool trying,
    const wire::WdpCtl& req, const wdp::Endpoint& from) {
  if (pair.cm_managed()) return fail(RejReason::qpn_unknown);
  // An id of rdma_cm has not let go of it yet.
  if (!trying && pair.observer() != nullptr) return fail(RejReason::qpn_unknown);
  if (pair.state() == QpState::err) return fail(RejReason::bad_parameters);
  if (pair.state() < QpState::rtr) return fail(RejReason::not_ready);
  const auto to = peer_of(pair);
  if (!to || req.source != pair.attributes().dest_qpn || from.address != to->path.to.address) {
    return fail(RejReason::bad_parameters);
  }
  // spec/addressing 6.2: the port in the number is bound as long as its process lives, and whoever
  // calls does so from there (spec/addressing 5.6). So no other user of the peer's host can call as
  // the peer.
  if (config::options().peer_check == config::PeerCheck::user && from.port != port_of(req.source)) {
    WEFT_LOG_REFUSAL(
        "queue pair 0x%06x: QPN 0x%06x calls from UDP port %u of %s, which is not in its number: "
        "refused; WEFT_PEER_CHECK=address allows it, for a network that translates ports",
        pair.number().value(), req.source.value(), from.port, from.address.to_string().c_str());
    return fail(RejReason::bad_parameters);
  }
  verbs::DatagramCaller& caller = *pair.transport().datagram_caller();
  const wdp::Offer offer = caller.offer(caller.driver(), to->path);
  if (drive::UcLink* link = caller.link()) {
    UcConnection& connection = link->connection();
    if (connection.state() == UcConnection::State::open) return fail(RejReason::not_ready);
    // Both call: the WdpSocket finds out which one gives in.
    const bool calling = connection.state() == UcConnection::State::setting_up &&
                         connection.handshake() != nullptr && connection.handshake()->active();
    if (calling) return wdp::WdpSocketOwner::Callee{&connection, offer};
  }
  // A peer that was lost calls anew.
  if (!trying) add(token, owner, pair);
  return wdp::WdpSocketOwner::Callee{&caller.expect_call(token), offer};
}

}  // namespace weft::cm
