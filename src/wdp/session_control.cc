#include "wdp/session_control.h"

#include <algorithm>
#include <array>

namespace weft::wdp {

using wire::CtlType;
using wire::WdpCtl;
using wire::WdpDrop;

SessionControl::SessionControl(const UcParameters& parameters, UcWriter& writer, Rtt& rtt,
                               UcCounters& counters, Random& random, Time now)
    : parameters_(parameters),
      writer_(writer),
      rtt_(rtt),
      counters_(counters),
      probe_(parameters.max_payload, parameters.path.to.address.is_ipv4(),
             parameters.probes_path && !parameters.is_static, random),
      now_(now),
      keepalives_(parameters.is_static, now) {}

// --- what is said

WdpCtl SessionControl::message(CtlType type) const {
  return {.type = type,
          .didx = parameters_.peer_index(),
          .sidx = parameters_.own_index(),
          .token = parameters_.peer_token,
          .source_token = parameters_.own_token,
          .source = parameters_.own_qpn,
          .destination = parameters_.peer_qpn,
          .service = wire::CtlService::uc,
          .highest_psn = Psn{writer_.next_psn().value() - 1}};
}

void SessionControl::say(const WdpCtl& c) {
  if (!parameters_.is_static) outbox_.say(c);
}

void SessionControl::report(wire::TermError error, const wire::WdpData& about) {
  if (state_ != State::open || parameters_.is_static) return;
  if (errors_ == 0 || now_ - errors_since_ >= 1s) {
    errors_since_ = now_;
    errors_ = 0;
  }
  if (errors_ >= kErrorsPerSecond) return;
  ++errors_;
  ++counters_.errors_sent;
  std::array<std::byte, wire::WdpData::kSize> header;
  about.encode(header.data());
  WdpCtl c = message(CtlType::err);
  c.reason = ErrorBits<wire::TermError>::pack(error);
  c.offending = header;
  say(c);
}

void SessionControl::fill(Train& train, Time now) {
  if (!train.empty()) return;
  if (outbox_.empty() && alive()) {
    if (const auto p = probe_.take(now)) {
      WdpCtl c = message(CtlType::probe);
      c.xid = p->xid;
      c.length = static_cast<uint16_t>(p->size);
      say(c);
    }
  }
  outbox_.fill(train, parameters_.path);
}

// --- what is heard

SessionControl::Event SessionControl::received(const WdpCtl& c, PsnWindow& psns, Time now) {
  now_ = now;
  if (state_ == State::gone || parameters_.is_static) return Event::none;
  heard(now);
  switch (c.type) {
    case CtlType::ka: {
      psns.peer_sent(c.highest_psn);
      WdpCtl answer = message(CtlType::kaa);
      answer.xid = c.xid;
      answer.highest_psn = psns.highest();
      answer.received = static_cast<uint32_t>(counters_.datagrams_received);
      answer.duplicates = static_cast<uint32_t>(counters_.drops.of(WdpDrop::duplicate));
      if (alive()) say(answer);
      return Event::none;
    }
    case CtlType::kaa:
      if (const auto took = keepalives_.answered(c.xid, now)) rtt_.sample(*took);
      return Event::none;
    case CtlType::probe: {
      WdpCtl answer = message(CtlType::probea);
      answer.xid = c.xid;
      answer.max_payload = c.length;
      if (alive()) say(answer);
      return Event::none;
    }
    case CtlType::probea:
      probe_.answered(c.xid, c.max_payload);
      return Event::none;
    case CtlType::dreq: {
      psns.peer_sent(c.highest_psn);
      say(message(CtlType::drep));
      if (state_ == State::closing) {
        begin_time_wait(now);
        return Event::closed;
      }
      if (state_ != State::open) return Event::none;
      state_ = State::peer_left;
      keepalives_.stop();
      peer_last_ = c.highest_psn;
      left_at_ = now + kGoodbyeHold;
      return Event::peer_leaves;
    }
    case CtlType::drep:
      if (state_ != State::closing) return Event::none;
      begin_time_wait(now);
      return Event::closed;
    case CtlType::err:
      if (!alive()) return Event::none;
      ++counters_.errors_received;
      error_ = c;
      error_.private_data = error_.tlvs = {};
      error_header_.assign(c.offending.begin(), c.offending.end());
      error_.offending = error_header_;
      return Event::refused;
    default:
      return Event::none;
  }
}

// --- ending

void SessionControl::begin_time_wait(Time now) {
  state_ = State::time_wait;
  keepalives_.stop();
  dreq_at_ = left_at_ = Time::never();
  over_at_ = now + kTimeWait;
}

void SessionControl::disconnect(uint32_t reason, Time now) {
  now_ = now;
  if (state_ == State::peer_left) begin_time_wait(now);  // it has said so itself
  if (state_ != State::open) return;
  if (parameters_.is_static) {
    state_ = State::gone;
    return;
  }
  state_ = State::closing;
  keepalives_.stop();
  reason_ = reason;
  say_dreq(now);
}

// spec/wdp 5.2: DREQ: 3 tries 100 ms apart, then gone.
void SessionControl::say_dreq(Time now) {
  WdpCtl c = message(CtlType::dreq);
  c.reason = reason_;
  c.attempt = static_cast<uint8_t>(dreqs_);
  say(c);
  ++dreqs_;
  dreq_at_ = now + kDreqEvery;
}

// --- time

Time SessionControl::deadline() const {
  if (state_ == State::gone) return Time::never();
  return std::min({keepalives_.deadline(), dreq_at_, left_at_, over_at_,
                   alive() ? probe_.deadline() : Time::never()});
}

void SessionControl::ask(Time now, bool again) {
  WdpCtl c = message(CtlType::ka);
  c.xid = keepalives_.ask(now, again);
  say(c);
}

SessionControl::Event SessionControl::tick(Time now) {
  now_ = now;
  probe_.tick(now);
  if (now >= over_at_) {
    over_at_ = Time::never();
    state_ = State::gone;
  }
  if (now >= left_at_) {
    begin_time_wait(now);
    return Event::peer_closed;
  }
  if (now >= dreq_at_) {
    if (dreqs_ < kDreqTries) {
      say_dreq(now);
    } else {
      // Nobody answers. Late copies of its data may still be under way.
      begin_time_wait(now);
      return Event::closed;
    }
  }
  switch (keepalives_.tick(now)) {
    case Keepalives::Due::nothing:
      break;
    case Keepalives::Due::ask:
      ask(now, true);
      break;
    case Keepalives::Due::lost:
      state_ = State::gone;
      return Event::lost;
  }
  return Event::none;
}

SessionControl::Event SessionControl::port_closed() {
  if (unanswered_since().is_never()) return Event::none;
  keepalives_.stop();
  state_ = State::gone;
  return Event::lost;
}

}  // namespace weft::wdp
