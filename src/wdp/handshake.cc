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
  if (!active_ && !address_.allows(size)) return;
  address_.went(size);
  outbox_.say(c);
  if (c.type == CtlType::rej) rejected_by_us_ = static_cast<RejReason>(c.reason);
}

void Handshake::say_request(Time now) {
  WdpCtl c = message(CtlType::req);
  c.token = SessionToken{};
  c.cookie = cookie_;
  c.private_data = offer_.private_data;
  c.tlvs = offer_.tlvs;
  say(c);
  round_trip_.said(now);
  ++attempt_;
}

void Handshake::say_reply(Time now) {
  WdpCtl c = message(CtlType::rep);
  // spec/mpa 2.3.3: what we serve is what the peer asks for at most, and the other way round.
  c.ird = std::min(offer_.ird, peer_.ord);
  c.ord = std::min(offer_.ord, peer_.ird);
  c.private_data = offer_.private_data;
  if (calls_too()) c.xid = *answered_;
  say(c);
  if (!calls_too()) round_trip_.said(now);
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
  tries_ = {};
  tries_.begin(now);
  say_request(now);
}

bool Handshake::is_answer(const WdpCtl& c) const {
  return active_ && c.xid == xid_ && c.service == offer_.service;
}

Handshake::Verdict Handshake::on_cookie(const WdpCtl& c, Time now) {
  if (state_ != State::req_sent || c.cookie == cookie_ || cookies_ == kMostCookies) return Ok{};
  ++cookies_;
  cookie_ = c.cookie;
  round_trip_.begin();  // whoever asks for a cookie answers the REQ that has it
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
  round_trip_.answered(now);
  answered_.reset();
  state_ = State::established;
  tries_.stop();
  // "Service 4: the REP ends it (no RTU, no session)".
  if (resolves()) return Ok{};
  tries_.begin_rtu(now);
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
  address_ = {};
  address_.came(size, validated);
}

void Handshake::requested_again(size_t size, bool validated, Time now) {
  address_.came(size, validated);
  if (state_ == State::req_received) {
    WdpCtl c = message(CtlType::wait);
    c.source_token = SessionToken{};
    c.reason = kWaitMs;
    say(c);
  } else if (state_ == State::rep_sent) {
    say_reply(now);
    if (address_.is_validated() && !resolves()) tries_.resume(now);
  }
}

void Handshake::accept(const Offer& offer, Time now) {
  offer_ = offer;
  offer_.service = peer_.service;
  path_.traffic_class = offer.traffic_class;
  path_.hop_limit = offer.hop_limit;
  path_.rate = offer.rate;
  state_ = State::rep_sent;
  tries_.begin(now);
  // spec/wdp 4.3: REP is resent on a timer only once the peer's address is validated by a cookie.
  if (!address_.is_validated() || resolves()) tries_.stop_repeating();
  // "a repeated REQ gets the same answer for 2 s"
  if (resolves()) tries_.give_up_at(now + kTimeWait);
  round_trip_.begin();
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
  round_trip_.begin();
  tries_.begin(now);
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
  round_trip_.spoil();  // it would be from our REQ on
  outbox_.clear();
}

void Handshake::confirmed(Time now) {
  if (calls_too()) take_answered();
  if (state_ == State::rep_sent) {
    state_ = State::established;
    round_trip_.answered(now);
    address_.validate();
    tries_.stop();
  } else if (state_ == State::established) {
    tries_.stop_repeating();  // the peer heard our RTU
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
  tries_.stop();
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
      // The parser has refused more than 30 s.
      if (state_ == State::req_sent) tries_.wait(now, std::chrono::milliseconds{c.reason});
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

void Handshake::tick(Time now) {
  if (tries_.is_given_up(now)) {
    if (state_ == State::rep_sent && resolves()) {
      state_ = State::established;
      tries_.stop();
    } else {
      fail_with(Failure::timeout);
    }
    return;
  }
  if (!tries_.is_due(now)) return;
  if (state_ == State::req_sent) {
    // Either of the two that comes through will do.
    if (calls_too()) say_reply(now);
    say_request(now);
  } else if (state_ == State::rep_sent) {
    say_reply(now);
  } else if (state_ == State::established) {
    say(message(CtlType::rtu));
  }
  tries_.repeated(now);
}

UcParameters Handshake::parameters() const {
  const CtlFeatures both = CtlFeatures::agreed(offer_.features, peer_.features);
  const auto& rtt = round_trip_.value();
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
          .close_by = offer_.close_by || (rtt && is_close_by(*rtt)),
          .rtt = rtt.value_or(Duration{0}),
          .probes_path = offer_.probes_path};
}

}  // namespace weft::wdp
