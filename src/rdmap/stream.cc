#include "rdmap/stream.h"

#include <algorithm>

#include "rdmap/blame.h"
#include "rdmap/faults.h"

namespace weft::rdmap {

namespace term = wire::term;
using wire::Opcode;
using wire::TaggedHeader;

namespace {
using namespace std::chrono_literals;

constexpr Duration kOpeningWriteAfter = 10ms;  // spec/mpa 2.4
}  // namespace

Stream::Stream(Consumer& consumer, const StreamConfig& config, uint32_t seed, Time now)
    : consumer_(consumer),
      config_(config),
      // The RTR read has its place even where no other read is allowed (spec/mpa 2.4).
      inbound_(std::max<size_t>(config.mpa.ird, config.mpa.rtr == mpa::Rtr::read ? 1 : 0)),
      send_path_(consumer, config_, seed),
      receive_path_(consumer, config_, send_path_, inbound_, delivery_),
      segments_(receive_path_),
      receiver_(segments_),
      response_payload_(max_payload(config, TaggedHeader::kSize)) {
  const mpa::Parameters& p = config.mpa;
  receiver_.configure(p.crc, !config.initiator && p.peer_to_peer && p.rtr == mpa::Rtr::fpdu);
  writer_.configure(p.crc, p.send_markers);
  writer_.keep_whole_in(fpdu_segment(config));
  if (!config.initiator) {
    // RFC 5044 section 7.1.2 and RFC 6581 section 9: the Responder sends nothing before the
    // Initiator's first FPDU.
    silent_ = true;
    // Linux siw has no peer-to-peer model and sends nothing unasked: when its program waits for the
    // server to speak, both would wait for ever. By then it has surely taken the Reply in
    // (spec/mpa 2.5.2).
    if (!p.extension && !p.peer_to_peer && config.responder_wait > Duration{}) {
      speak_at_ = now + config.responder_wait;
    }
  } else if (p.peer_to_peer) {
    rtr_pending_ = true;
  } else {
    // A server that speaks first waits for an FPDU that no program posted (spec/mpa 2.4).
    opening_write_at_ = p.extension ? now : now + kOpeningWriteAfter;
  }
}

// --- bytes in

bool Stream::wants_bytes() const {
  if (state_ == State::terminating || leaving_) return !peer_fin_;  // to be discarded
  return input_live() && !receive_path_.full();
}

bool Stream::direct_places(PieceList& places, Time now) {
  if (Verdict v = receiver_.direct_places(places); !v.ok()) {
    fail_stream(v.error(), last_segment(), now);
    return false;
  }
  return true;
}

void Stream::direct_received(size_t n, Time now) {
  if (!input_live()) return;
  const uint64_t before = receiver_.fpdus();
  const Verdict v = receiver_.direct_received(n);
  counters().fpdus_received.add(receiver_.fpdus() - before);
  receive_path_.forget_place();
  after_input(v, now);
}

void Stream::received(Bytes bytes, Time now) {
  if (!input_live() || leaving_) return;
  const uint64_t before = receiver_.fpdus();
  const Verdict v = receiver_.received(bytes);
  counters().fpdus_received.add(receiver_.fpdus() - before);
  receive_path_.forget_place();
  after_input(v, now);
}

void Stream::after_input(const Verdict& v, Time now) {
  received_any_ = true;
  if (!config_.mpa.extension) fin_settles_at_ = now + kFinSettles;
  kick_at_ = Time::never();  // but the peer may speak without having seen the RTR (spec/mpa 2.4)
  if (silent_ && receiver_.fpdus() > 0) end_silence();
  if (const auto report = receive_path_.take_report()) {
    send_path_.covered(report->run);
    if (report->waits_with_timer) {
      counters().rnr_received.add();
      send_path_.receiver_not_ready(*report->waits_with_timer, now);
    } else {
      send_path_.receiver_ready();
    }
  }
  if (receive_path_.terminate()) {
    if (!v.ok()) count_refusal(v.error());
    on_terminate(*receive_path_.terminate(), now);
    return;
  }
  if (!v.ok()) {
    fail_stream(v.error(), last_segment(), now);
    return;
  }
  // A plain peer knows no "not ready": its Send waits for a receive, but not for ever
  // (spec/rdmap 4.7).
  if (config_.mpa.extension || !receive_path_.waits_for_receive()) {
    receive_wanted_until_ = Time::never();
  } else if (receive_wanted_until_.is_never()) {
    receive_wanted_until_ = now + config_.rnr_wait;
  }
  check_own_requests(now);
}

void Stream::end_silence() {
  speak_at_ = Time::never();
  if (!std::exchange(silent_, false)) return;
  if (state_ == State::open) consumer_.stream_ready();
}

void Stream::peer_closed(Time now) {
  peer_fin_ = true;
  if (!input_live()) return;
  if (leaving_) {
    if (shutdown_done_) finish(StreamEnd::Kind::closed, {});
    return;
  }
  if (!receiver_.at_boundary()) {
    connection_lost();
    return;
  }
  // It may still listen: the FPDU that is on its way is sent to its end (spec/rdmap 5.4).
  parting_ = true;
  linger_until_ = now + kLinger;
  finish(state_ == State::closing ? StreamEnd::Kind::closed : StreamEnd::Kind::peer_closed, {});
}

void Stream::connection_lost() {
  if (state_ == State::closing && shutdown_done_) {
    finish(StreamEnd::Kind::closed,
           {});  // all was said; the peer closed without listening to the end
    return;
  }
  const bool told = !input_live();
  state_ = State::ended;
  if (!told) end(StreamEnd::Kind::lost, term::kMpaConnectionLost);
}

void Stream::source_lost(const void* address) {
  if (!input_live()) return;
  send_path_.blame_source(address);
  // The bytes are missing from the stream: no FPDU can follow them.
  finish(StreamEnd::Kind::local_error, term::kLocalCatastrophic);
}

// --- ways to end

void Stream::end(StreamEnd::Kind kind, wire::TermError error) {
  if (std::exchange(consumer_gone_, true)) return;
  stats::count(engine_counters().stream_end, kind);
  untold_ = {.kind = kind, .error = error};
  tell_again();
}

void Stream::tell_again() {
  if (!untold_) return;
  consumer_.stream_ended(*untold_);
  untold_.reset();
}

void Stream::finish(StreamEnd::Kind kind, wire::TermError error) {
  state_ = State::ended;
  end(kind, error);
}

ReceivePath::Quote Stream::last_segment() const {
  return segments_.segment_valid() ? receive_path_.quote(segments_.segment())
                                   : ReceivePath::Quote{};
}

void Stream::count_refusal(wire::TermError error) {
  stats::count(engine_counters().refused, error.why);
}

void Stream::fail_stream(wire::TermError error, const ReceivePath::Quote& about, Time now) {
  count_refusal(error);
  const ddp::Segment* s = about.segment;
  // A Terminate is never answered, not even a wrong one (RFC 5040 section 7).
  if (s != nullptr && s->control.opcode == Opcode::terminate) {
    finish(StreamEnd::Kind::lost, error);
    return;
  }
  wire::Terminate t{.error = error};
  const bool about_segment = error.layer != wire::Layer::llp && error != term::kLocalCatastrophic &&
                             error != term::kOperationVersion &&
                             error != term::kOperationUnexpectedOpcode &&
                             error != term::kTaggedVersion && error != term::kUntaggedVersion;
  if (about_segment && s != nullptr) {
    t.has_segment_length = true;
    t.segment_length = s->ulpdu;
    const Bytes header = s->header_bytes();
    t.ddp_header_size = static_cast<uint8_t>(header.size());
    std::copy(header.begin(), header.end(), t.ddp_header.begin());
    // Of a Read Request alone: RFC 5040 section 4.8, RFC 7306 section 8.1.
    if (error.layer == wire::Layer::rdmap && s->control.opcode == Opcode::read_request) {
      t.rdmap_header_size = static_cast<uint8_t>(about.request.size());
      std::copy(about.request.begin(), about.request.end(), t.rdmap_header.begin());
    }
  }
  begin_terminate(t, now);
  const bool own = error == term::kLocalCatastrophic || receive_path_.own_fault();
  end(own ? StreamEnd::Kind::local_error : StreamEnd::Kind::protocol_error, error);
}

void Stream::begin_terminate(const wire::Terminate& t, Time now) {
  if (shutdown_done_) {
    state_ = State::ended;  // our FIN is out, and nothing can follow it
    return;
  }
  state_ = State::terminating;
  own_terminate_ = std::make_unique<wire::Terminate>(t);
  linger_until_ = now + kLinger;
}

void Stream::on_terminate(const wire::Terminate& t, Time now) {
  state_ = State::terminating;  // with nothing of our own to say
  linger_until_ = now + kLinger;
  stats::count(engine_counters().terminate_received, wire::index_of(t.error));
  config_.counters.qp->terminate({.received = true, .error = t.error});
  apply_blame(t, config_.mpa.extension, send_path_);
  end(StreamEnd::Kind::terminated, t.error);
}

// One of our own requests cannot be carried out.
void Stream::check_own_requests(Time now) {
  if (!input_live() || leaving_) return;
  if (!send_path_.failed()) return;
  begin_terminate({.error = term::kLocalCatastrophic}, now);
  end(StreamEnd::Kind::local_error, term::kLocalCatastrophic);
}

void Stream::receives_posted(Time now) {
  if (!input_live() || leaving_) return;
  const auto moved = receive_path_.receives_posted();
  if (!moved.ok()) {
    fail_stream(moved.error(), receive_path_.quote_waiting(), now);
  } else if (!receive_path_.waits_for_receive()) {
    receive_wanted_until_ = Time::never();
  } else if (*moved && !receive_wanted_until_.is_never()) {
    receive_wanted_until_ = now + config_.rnr_wait;  // another message is first in line now
  }
}

void Stream::begin_closing(Time now) {
  state_ = State::closing;
  linger_until_ = now + kLinger;
  if (now >= fin_settles_at_) fin_settles_at_ = Time::never();
}

void Stream::close(Time now) {
  if (!input_live() || state_ == State::closing) return;
  begin_closing(now);
  opening_write_at_ = Time::never();
  send_path_.close();
}

void Stream::leave(Time now) {
  consumer_gone_ = true;
  if (!input_live()) return;
  leaving_ = drain_over_ = true;
  begin_closing(now);
  opening_write_at_ = receive_wanted_until_ = Time::never();
}

void Stream::abort(Time now) {
  consumer_gone_ = true;
  if (!input_live()) return;
  if (silent_) {
    state_ = State::ended;  // no FPDU may go out yet
    return;
  }
  begin_terminate({.error = term::kLocalCatastrophic}, now);
}

Stream::Wish Stream::wish() const {
  if (!rtr_settled() && state_ != State::ended) return Wish::none;
  if (state_ == State::ended) return linger_over_ && !shutdown_done_ ? Wish::reset : Wish::close;
  if (state_ == State::closing) {
    // After leave() the send queue is gone: drain_over_ comes first.
    const bool drained =
        drain_over_ || (send_path_.drained() && inbound_.empty() && !owes_delivered());
    return !shutdown_done_ && drained && fin_at().is_never() ? Wish::shutdown_write : Wish::none;
  }
  if (state_ != State::terminating) return Wish::none;
  if (!shutdown_done_) {
    if (linger_over_) return Wish::reset;
    return own_terminate_ && !terminate_written_ ? Wish::none : Wish::shutdown_write;
  }
  // Closing over unread bytes would turn into a reset and take the Terminate with it (spec/errors
  // 4).
  return peer_fin_ || linger_over_ ? Wish::close : Wish::none;
}

void Stream::write_side_shut(Time now) {
  shutdown_done_ = true;
  kick_at_ = Time::never();
  if (state_ != State::closing) return;
  linger_until_ = now + kLinger;
  if (leaving_ && peer_fin_) finish(StreamEnd::Kind::closed, {});
}

// --- time

Time Stream::deadline() const {
  // Only what tick() acts on: a deadline that stays in the past would keep its keeper busy for
  // ever.
  if (state_ == State::ended) return parting_ && !linger_over_ ? linger_until_ : Time::never();
  if (!input_live())
    return std::min({linger_until_, rtr_settles_at_, waking_peer() ? kick_at_ : Time::never()});
  if (leaving_) return std::min({linger_until_, rtr_settles_at_, fin_at(), kick_at_});
  return std::min({fin_at(), opening_write_at_, speak_at_, kick_at_, linger_until_, rtr_settles_at_,
                   receive_wanted_until_, send_path_.rnr_deadline()});
}

void Stream::tick(Time now) {
  if (now >= rtr_settles_at_) rtr_settles_at_ = Time::never();
  if (now >= fin_settles_at_) fin_settles_at_ = Time::never();
  if (now >= linger_until_) {
    linger_until_ = Time::never();
    if (state_ == State::closing) {
      drain_timed_out(now);
    } else {
      linger_over_ = true;
    }
  }
  if ((input_live() || waking_peer()) && now >= kick_at_) {
    engine_counters().kicks.add();
    send_path_.add_empty_write(false);
    schedule_kick();
  }
  if (!input_live() || leaving_) return;
  if (now >= speak_at_) end_silence();
  if (now >= opening_write_at_) {
    opening_write_at_ = Time::never();
    if (!sent_fpdu_ && !send_path_.ready()) send_path_.add_empty_write(false);
  }
  if (now >= receive_wanted_until_) {
    receive_wanted_until_ = Time::never();
    fail_stream(term::kUntaggedNoBuffer.because(wire::Refusal::no_receive_in_time),
                receive_path_.quote_waiting(), now);
    return;
  }
  if (now >= send_path_.rnr_deadline()) {
    send_path_.blame_waiting(Status::rnr_retry_exceeded);
    begin_terminate({.error = term::kLocalCatastrophic}, now);
    end(StreamEnd::Kind::local_error, term::kLocalCatastrophic);
  }
}

void Stream::drain_timed_out(Time now) {
  if (shutdown_done_) {
    finish(StreamEnd::Kind::closed, {});
  } else if (drain_over_) {
    linger_over_ = true;
    finish(StreamEnd::Kind::lost, term::kMpaConnectionLost);
  } else {
    drain_over_ = true;
    linger_until_ = now + kDrainStuck;
  }
}

void Stream::schedule_kick() {
  kick_at_ = kicks_ < kKickAfter.size() ? first_fpdu_at_ + kKickAfter[kicks_] : Time::never();
  ++kicks_;
}

}  // namespace weft::rdmap
