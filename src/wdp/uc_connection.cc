#include "wdp/uc_connection.h"

#include <algorithm>

namespace weft::wdp {

using wire::CtlType;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpCtl;
using wire::WdpDrop;

// --- set-up

void UcConnection::begin(std::unique_ptr<Handshake> handshake, Time now) {
  handshake_ = std::move(handshake);
  look_at_handshake(now);
}

void UcConnection::start_static(const UcParameters& parameters, Time now) {
  session_.emplace(consumer_, parameters, random_, windows_, now);
  session_->open();
}

// The session is there as soon as the peer may send: data may overtake the RTU.
void UcConnection::look_at_handshake(Time now) {
  if (handshake_ == nullptr) return;
  const auto s = handshake_->state();
  if (!session_ && (s == Handshake::State::rep_sent || s == Handshake::State::established)) {
    session_.emplace(consumer_, handshake_->parameters(), random_, windows_, now);
  }
  if (s == Handshake::State::established && session_) stand();
}

void UcConnection::confirm(Time now) {
  if (handshake_ == nullptr) return;
  handshake_->confirmed(now);
  if (handshake_->state() == Handshake::State::established) stand();
}

// Who was called learns with the RTU how far away the peer is.
void UcConnection::stand() {
  if (session_->is_open()) return;
  session_->met(handshake_->round_trip());
  session_->open();
}

// --- datagrams in

void UcConnection::received(const WdpCommon& common, Bytes datagram, Time now) {
  owner_.reached();
  if (state() == State::failed) return drops_.count(WdpDrop::stale_handshake);
  if (common.wdp_class == WdpClass::ctl) return received_ctl(common, datagram, now);
  if (!session_) return drops_.count(WdpDrop::unknown_token);
  const uint64_t before = session_->counters().datagrams_received;
  session_->received(common, datagram, now);
  // spec/wdp 4.3: Any valid data with the right token counts as RTU.
  if (session_->counters().datagrams_received > before) confirm(now);
}

void UcConnection::received_ctl(const WdpCommon& common, Bytes datagram, Time now) {
  const auto c = WdpCtl::parse(common, datagram);
  if (!c.ok()) return drops_.count(c.error());
  if (c->type <= CtlType::wait) {
    if (handshake_ == nullptr) return drops_.count(WdpDrop::unwanted_ctl);
    const auto v = handshake_->received(*c, datagram.size(), now);
    if (!v.ok()) return drops_.count(v.error());
    look_at_handshake(now);
    return;
  }
  if (!session_) return drops_.count(WdpDrop::unwanted_ctl);
  confirm(now);
  session_->received(*c, now);
}

void UcConnection::requested_again(const WdpCtl& req, size_t size, bool validated, Time now) {
  owner_.reached();
  if (handshake_->state() == Handshake::State::req_sent) {
    const auto v = handshake_->received(req, size, now);
    if (!v.ok()) drops_.count(v.error());
    look_at_handshake(now);
  } else {
    handshake_->requested_again(size, validated, now);
  }
}

// --- trains out

// Until the peer has shown that it is where it says, the handshake alone counts what goes there
// (spec/threats 4).
bool UcConnection::speaks() const {
  return session_ && session_->is_open();
}

bool UcConnection::ready(Time now) {
  return (handshake_ != nullptr && handshake_->ready()) || (speaks() && session_->ready(now));
}

bool UcConnection::urgent(Time now) const {
  return (handshake_ != nullptr && handshake_->ready()) || (speaks() && session_->urgent(now));
}

void UcConnection::fill(Train& train, Time now) {
  if (handshake_ != nullptr && handshake_->ready()) {
    handshake_->fill(train);
  } else if (speaks()) {
    session_->fill(train, now);
  }
}

void UcConnection::llp_took_all(Time now) {
  if (session_) session_->llp_took_all(now);
}

void UcConnection::path_carries(size_t max_payload) {
  if (session_) session_->path_carries(max_payload);
}

void UcConnection::own_memory_lost(Time now) {
  if (session_) session_->own_memory_lost(now);
}

// --- time and state

Time UcConnection::deadline() const {
  const Time h = handshake_ != nullptr ? handshake_->deadline() : Time::never();
  return speaks() ? std::min(h, session_->deadline()) : h;
}

void UcConnection::tick(Time now) {
  if (handshake_ != nullptr && now >= handshake_->deadline()) {
    handshake_->tick(now);
    look_at_handshake(now);
  }
  if (speaks()) session_->tick(now);
}

Time UcConnection::unanswered_since() const {
  if (speaks()) return session_->unanswered_since();
  return handshake_ != nullptr ? handshake_->unanswered_since() : Time::never();
}

Time UcConnection::port_in_doubt_since() const {
  const bool asks = speaks() ? !session_->parameters().is_static
                             : handshake_ != nullptr && handshake_->calls_listener();
  if (!asks) return Time::never();
  return unanswered_since() + (speaks() ? kAsksForPortOfSession : kAsksForPort);
}

// --- the end

void UcConnection::close(Time now) {
  if (state() == State::open) {
    session_->close(now);
  } else {
    abort(0, now);
  }
}

void UcConnection::port_closed() {
  if (speaks()) return session_->port_closed();
  if (handshake_ != nullptr) handshake_->port_closed();
}

void UcConnection::abort(uint32_t reason, Time now) {
  if (speaks()) {
    session_->abort(reason, now);
    return;
  }
  if (session_) session_->detach();
  if (handshake_ != nullptr) handshake_->withdraw();
}

UcConnection::State UcConnection::state() const {
  if (handshake_ != nullptr && handshake_->state() == Handshake::State::failed) {
    return State::failed;
  }
  if (!session_ || !session_->is_open()) return State::setting_up;
  return session_->ended() ? State::ended : State::open;
}

bool UcConnection::gone() const {
  if (state() == State::failed) return !handshake_->ready();
  return session_ && session_->gone();
}

}  // namespace weft::wdp
