#include "wdp/handshake.h"

#include <algorithm>
#include <array>
#include <compare>
#include <utility>

#include "wdp/limits.h"

namespace weft::wdp {

using wire::CtlFeatures;
using wire::CtlType;
using wire::RejReason;
using wire::WdpCtl;
using wire::WdpDrop;

namespace {

// A peer that sends another cookie for each REQ would keep us busy.
constexpr uint32_t kMostCookies = 8;

}  // namespace

// --- what is said

WdpCtl Handshake::message(CtlType type) const {
  const bool unheard = type == CtlType::req || peer_.source == Qpn{};
  const Qpn peer = unheard ? destination_ : peer_.source;
  // See UcParameters::peer_index().
  const bool same_socket = !active_ || port_of(peer) == path_.to.port;
  return {.type = type,
          .attempt = attempt_,
          .didx = same_socket ? index_of(peer) : wire::kPortIndex,
          .sidx = index_of(offer_.own_qpn),
          .token = peer_.source_token,
          .source_token = offer_.token,
          .source = offer_.own_qpn,
          .destination = peer,
          .xid = xid_,
          .service = offer_.service,
          .ib_style = ib_style_,
          .ird = offer_.ird,
          .ord = offer_.ord,
          .max_payload = offer_.max_payload,
          .first_psn = offer_.first_psn,
          .features = offer_.features};
}

void Handshake::say(const WdpCtl& c) {
  const size_t size = c.size();
  // spec/threats 4: never draws more than 3x its size before address validation.
  if (!active_ && !validated_ && went_ + size > 3 * came_) return;
  went_ += size;
  outbox_.say(c);
  if (c.type == CtlType::rej) rejected_by_us_ = static_cast<RejReason>(c.reason);
}

void Handshake::start_trying(Time now) {
  try_ = 0;
  tries_since_ = now;
  next_try_ = now + kHandshakeTries[1];
  fails_at_ = now + kHandshakeFails;
}

void Handshake::say_request(Time now) {
  WdpCtl c = message(CtlType::req);
  c.token = SessionToken{};
  c.cookie = cookie_;
  c.private_data = offer_.private_data;
  c.tlvs = offer_.tlvs;
  say(c);
  note_said(now);
  ++attempt_;
}

void Handshake::note_said(Time now) {
  repeated_ = !said_at_.is_never();
  if (!repeated_) said_at_ = now;
}

void Handshake::take_round_trip(Time now) {
  if (!repeated_) rtt_ = now - said_at_;
}

void Handshake::say_reply(Time now) {
  WdpCtl c = message(CtlType::rep);
  // spec/mpa 2.3.3: what we serve is what the peer asks for at most, and the other way round.
  c.ird = std::min(offer_.ird, peer_.ord);
  c.ord = std::min(offer_.ord, peer_.ird);
  c.private_data = offer_.private_data;
  if (calls_too()) c.xid = *answered_;
  say(c);
  if (!calls_too()) note_said(now);
  ++attempt_;
}

// --- active

void Handshake::connect(const Offer& offer, const Path& path, Qpn destination, bool ib_style,
                        Time now) {
  active_ = true;
  ib_style_ = ib_style;
  offer_ = offer;
  path_ = path;
  destination_ = destination;
  xid_ = Xid{static_cast<uint32_t>(random_.next())};
  state_ = State::req_sent;
  waits_until_ = Time::never();
  start_trying(now);
  say_request(now);
}

bool Handshake::is_answer(const WdpCtl& c) const {
  return active_ && c.xid == xid_ && c.service == offer_.service;
}

Handshake::Verdict Handshake::on_cookie(const WdpCtl& c, Time now) {
  if (state_ != State::req_sent || c.cookie == cookie_ || cookies_ == kMostCookies) return Ok{};
  ++cookies_;
  cookie_ = c.cookie;
  said_at_ = Time::never();  // whoever asks for a cookie answers the REQ that has it
  say_request(now);
  return Ok{};
}

Handshake::Verdict Handshake::on_reply(const WdpCtl& c, Time now) {
  if (state_ == State::established) {
    if (resolves()) return Ok{};
    // Our RTU was lost. The peer's token is the one that it told at first.
    if (c.source_token == peer_.source_token) say(message(CtlType::rtu));
    return Ok{};
  }
  if (state_ != State::req_sent) return Ok{};
  // Between queue pairs it is the one that was called that answers.
  if (ib_style_ && c.source != destination_) return fail(WdpDrop::stale_handshake);
  remember(c);
  const bool critical = wire::has_critical_tlv(c.tlvs);
  if (critical || (!resolves() && !possible(c))) {
    WdpCtl no = message(CtlType::rej);
    no.reason =
        static_cast<uint32_t>(critical ? RejReason::critical_tlv : RejReason::bad_parameters);
    say(no);
    fail_with(Failure::bad_parameters);
    return Ok{};
  }
  take_round_trip(now);
  answered_.reset();
  state_ = State::established;
  next_try_ = fails_at_ = Time::never();
  // "Service 4: the REP ends it (no RTU, no session)".
  if (resolves()) return Ok{};
  try_ = 0;
  tries_since_ = now;
  next_try_ = now + kRtuTries[1];
  say(message(CtlType::rtu));
  return Ok{};
}

bool Handshake::possible(const WdpCtl& rep) const {
  return rep.ord <= offer_.ird && wire::wdp_stride(rep.max_payload) > 0;
}

// --- passive

void Handshake::requested(const WdpCtl& req, const Path& path, size_t size, bool validated) {
  state_ = State::req_received;
  active_ = false;
  ib_style_ = req.ib_style;
  path_ = path;
  xid_ = req.xid;
  remember(req);
  // A REJ or WAIT comes from the port or queue pair that was asked.
  offer_.own_qpn = req.destination;
  offer_.service = req.service;
  came_ = size;
  went_ = 0;
  validated_ = validated;
}

void Handshake::requested_again(size_t size, bool validated, Time now) {
  came_ += size;
  validated_ = validated_ || validated;
  if (state_ == State::req_received) {
    WdpCtl c = message(CtlType::wait);
    c.source_token = SessionToken{};
    c.reason = kWaitMs;
    say(c);
  } else if (state_ == State::rep_sent) {
    say_reply(now);
    if (validated_ && !resolves() && next_try_.is_never()) next_try_ = now + kHandshakeTries[1];
  }
}

void Handshake::accept(const Offer& offer, Time now) {
  offer_ = offer;
  offer_.service = peer_.service;
  path_.traffic_class = offer.traffic_class;
  path_.hop_limit = offer.hop_limit;
  path_.rate = offer.rate;
  state_ = State::rep_sent;
  start_trying(now);
  // spec/wdp 4.3: REP is resent on a timer only once the peer's address is validated by a cookie.
  if (!validated_ || resolves()) next_try_ = Time::never();
  // "a repeated REQ gets the same answer for 2 s"
  if (resolves()) fails_at_ = now + kTimeWait;
  said_at_ = Time::never();
  say_reply(now);
}

void Handshake::reject(RejReason reason, Bytes private_data) {
  if (state_ != State::req_received && state_ != State::rep_sent) return;
  WdpCtl c = message(CtlType::rej);
  c.source_token = SessionToken{};
  c.reason = static_cast<uint32_t>(reason);
  c.private_data = private_data;
  say(c);
  fail_with(Failure::withdrawn);
}

void Handshake::forget() {
  outbox_.clear();
  fail_with(Failure::withdrawn);
}

void Handshake::withdraw() {
  if (!active_) return reject(RejReason::application, {});
  if (state_ != State::req_sent) return;
  outbox_.clear();
  fail_with(Failure::withdrawn);
}

void Handshake::port_closed() {
  if (state_ != State::req_sent) return;
  outbox_.clear();
  peer_.reason = static_cast<uint32_t>(RejReason::no_listener);
  fail_with(Failure::rejected);
}

// Two queue pairs that call each other (spec/wdp 4.6): compare (QPN, XID) of the two REQs; lower
// one proceeds, other side drops its own REQ and answers; both use tokens already announced.
Handshake::Verdict Handshake::on_request(const WdpCtl& c, size_t size, Time now) {
  const bool crossing = state_ == State::req_sent && ib_style_ && c.ib_style &&
                        c.source == destination_ && c.destination == offer_.own_qpn &&
                        c.service == offer_.service;
  if (!crossing) return Ok{};
  if (calls_too() && c.source_token == peer_.source_token && c.xid == *answered_) {
    say_reply(now);
    return Ok{};
  }
  if (std::pair{offer_.own_qpn, xid_} < std::pair{c.source, c.xid}) return Ok{};
  if (offer_.service == wire::CtlService::rd_channel) {
    answer_too(c, now);
    return Ok{};
  }
  const Offer own = offer_;
  outbox_.clear();
  requested(c, path_, size, false);
  accept(own, now);
  return Ok{};
}

// --- both, of a channel (spec/wdp-rd 2.2)

void Handshake::call_too(Time now) {
  if (state_ != State::rep_sent) return;
  answered_ = xid_;
  active_ = true;
  destination_ = make_qpn(path_.to.port, wire::kPortIndex);
  xid_ = Xid{static_cast<uint32_t>(random_.next())};
  state_ = State::req_sent;
  said_at_ = Time::never();
  start_trying(now);
  say_request(now);
}

void Handshake::answer_too(const WdpCtl& req, Time now) {
  remember(req);
  answered_ = req.xid;
  say_reply(now);
}

// The peer has heard the answer to its REQ: nobody needs to answer ours.
void Handshake::take_answered() {
  xid_ = *std::exchange(answered_, {});
  active_ = false;
  state_ = State::rep_sent;
  repeated_ = true;  // so that no round trip is taken from our REQ
  outbox_.clear();
}

void Handshake::confirmed(Time now) {
  if (calls_too()) take_answered();
  if (state_ == State::rep_sent) {
    state_ = State::established;
    take_round_trip(now);
    validated_ = true;
    next_try_ = fails_at_ = Time::never();
  } else if (state_ == State::established) {
    next_try_ = Time::never();  // the peer heard our RTU
  }
}

// --- both

void Handshake::remember(const WdpCtl& c) {
  peer_ = c;
  peer_private_data_.assign(c.private_data.begin(), c.private_data.end());
  peer_.private_data = peer_private_data_;
  peer_.tlvs = peer_.offending = {};
}

void Handshake::fail_with(Failure failure) {
  state_ = State::failed;
  failure_ = failure;
  next_try_ = fails_at_ = Time::never();
}

Handshake::Verdict Handshake::received(const WdpCtl& c, size_t size, Time now) {
  if (c.type == CtlType::req) return on_request(c, size, now);
  if (calls_too() && c.xid == *answered_) {
    if (c.type == CtlType::rtu) {
      confirmed(now);
      return Ok{};
    }
    if (c.type == CtlType::rej) {
      answered_.reset();
      return Ok{};
    }
  }
  if (c.type == CtlType::rtu || (c.type == CtlType::rej && !active_)) {
    if (active_ || c.xid != xid_) return fail(WdpDrop::stale_handshake);
    if (c.type == CtlType::rtu) {
      confirmed(now);
    } else if (state_ == State::rep_sent) {
      peer_.reason = c.reason;
      fail_with(Failure::rejected);
    }
    return Ok{};
  }
  if (!is_answer(c)) return fail(WdpDrop::stale_handshake);
  switch (c.type) {
    case CtlType::rep:
      return on_reply(c, now);
    case CtlType::cookie:
      return on_cookie(c, now);
    case CtlType::wait:
      if (state_ == State::req_sent) {
        // "WAIT pushes the next try and the deadline." The parser has refused more than 30 s.
        const Duration more = std::chrono::milliseconds{c.reason};
        if (waits_until_.is_never()) waits_until_ = now + kMostWaiting;
        start_trying(now + more);
        next_try_ = now + more;
        fails_at_ = std::min(fails_at_, waits_until_);
      }
      return Ok{};
    case CtlType::rej:
      if (state_ == State::req_sent) {
        remember(c);
        fail_with(Failure::rejected);
      }
      return Ok{};
    default:
      return Ok{};
  }
}

Time Handshake::deadline() const {
  return std::min(next_try_, fails_at_);
}

void Handshake::tick(Time now) {
  if (now >= fails_at_) {
    if (state_ == State::rep_sent && resolves()) {
      state_ = State::established;
      fails_at_ = Time::never();
    } else {
      fail_with(Failure::timeout);
    }
    return;
  }
  if (now < next_try_) return;
  const bool answering = state_ == State::established;
  const std::span<const Duration> tries =
      answering ? std::span<const Duration>{kRtuTries} : std::span<const Duration>{kHandshakeTries};
  if (state_ == State::req_sent) {
    // Either of the two that comes through will do.
    if (calls_too()) say_reply(now);
    say_request(now);
  } else if (state_ == State::rep_sent) {
    say_reply(now);
  } else if (answering) {
    say(message(CtlType::rtu));
  }
  // The first try that is not over yet.
  while (try_ < tries.size() && tries_since_ + tries[try_] <= now) ++try_;
  next_try_ = try_ < tries.size() ? tries_since_ + tries[try_] : Time::never();
}

UcParameters Handshake::parameters() const {
  const CtlFeatures both = CtlFeatures::agreed(offer_.features, peer_.features);
  return {.path = path_,
          .peer_token = peer_.source_token,
          .own_token = offer_.token,
          .own_qpn = offer_.own_qpn,
          .peer_qpn = peer_.source,
          .from_listener = !active_ && !ib_style_,
          .first_psn = offer_.first_psn,
          .peer_first_psn = peer_.first_psn,
          .crc = both.data_crc,
          .immediate = both.immediate,
          .reads = both.uc_read,
          .ird = std::min(offer_.ird, peer_.ord),
          .ord = std::min(offer_.ord, peer_.ird),
          .max_payload = std::min(offer_.max_payload, peer_.max_payload),
          .receive_buffer = offer_.receive_buffer,
          .retry_count = offer_.retry_count,
          .window = offer_.window,
          .close_by = offer_.close_by || (rtt_ && is_close_by(*rtt_)),
          .rtt = rtt_.value_or(Duration{0}),
          .probes_path = offer_.probes_path};
}

}  // namespace weft::wdp
