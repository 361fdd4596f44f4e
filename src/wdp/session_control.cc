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
      heard_(now),
      keepalive_at_(parameters.is_static ? Time::never() : now + kKeepaliveAfter) {}

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
      take_answer(c.xid, now);
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
      keepalive_at_ = Time::never();
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
  dreq_at_ = keepalive_at_ = left_at_ = Time::never();
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
  keepalive_at_ = Time::never();
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
  return std::min(
      {keepalive_at_, dreq_at_, left_at_, over_at_, alive() ? probe_.deadline() : Time::never()});
}

void SessionControl::ask(Time now, bool again) {
  WdpCtl c = message(CtlType::ka);
  // Each KA has a number of its own, also where there are several in a millisecond.
  const uint32_t clock = clock_ms(now);
  again = again && asking();
  if (heard_ >= asks_since_) asks_since_ = now;
  keepalive_clock_ = keepalive_clock_ == 0 || static_cast<int32_t>(clock - keepalive_clock_) > 0
                         ? clock
                         : keepalive_clock_ + 1;
  keepalive_sent_ = now;
  if (!again) {
    first_clock_ = keepalive_clock_;
    first_sent_ = now;
  }
  c.xid = Xid{keepalive_clock_};
  say(c);
}

// KAs are repeated sooner than a peer some milliseconds away can answer. Of those between the first
// and the last it is not known when they left: the first did before.
void SessionControl::take_answer(Xid xid, Time now) {
  const auto since_first = static_cast<int32_t>(xid.value() - first_clock_);
  const auto before_last = static_cast<int32_t>(keepalive_clock_ - xid.value());
  if (!asking() || since_first < 0 || before_last < 0) return;
  answer_took_ = now - (before_last == 0 ? keepalive_sent_ : first_sent_);
  rtt_.sample(answer_took_);
  keepalive_sent_ = Time::never();
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
  if (now < keepalive_at_) return Event::none;
  // spec/wdp 5.1: after 10 s without receiving; 5 tries 1 s apart; then DISCONNECTED
  if (keepalives_ == 0 && now < heard_ + kKeepaliveAfter) {
    keepalive_at_ = heard_ + kKeepaliveAfter;
    return Event::none;
  }
  if (keepalives_ == kKeepaliveTries) {
    state_ = State::gone;
    keepalive_at_ = Time::never();
    return Event::lost;
  }
  ++keepalives_;
  ask(now, true);
  keepalive_at_ = now + kKeepaliveEvery;
  return Event::none;
}

}  // namespace weft::wdp
