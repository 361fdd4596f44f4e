#include "rdmap/stream.h"

#include <algorithm>

#include "base/earliest.h"
#include "rdmap/blame.h"
#include "work/faults.h"

namespace weft::rdmap {

namespace term = wire::term;
using wire::Opcode;
using wire::TaggedHeader;
using wire::UntaggedHeader;

namespace {
constexpr uint32_t kMostResponsesInRow = 4;  // while own requests wait (spec/rdmap 2.2)
}  // namespace

Stream::Stream(work::Consumer& consumer, const StreamConfig& config, uint32_t seed, Time now)
    : consumer_(consumer),
      config_(config),
      opening_(config_, now),
      responses_(consumer, config_),
      send_path_(consumer, config_, seed),
      receive_path_(consumer, config_, send_path_, responses_.requests(), delivery_),
      segments_(receive_path_),
      receiver_(segments_) {
  const mpa::Parameters& p = config.mpa;
  receiver_.configure(p.crc, !config.initiator && p.peer_to_peer && p.rtr == mpa::Rtr::fpdu);
  writer_.configure(p.crc, p.send_markers);
  writer_.keep_whole_in(fpdu_segment(config));
}

// --- bytes in

bool Stream::wants_bytes() const {
  if (takes_input()) return !receive_path_.full();
  return !over() && !ending_.peer_fin();  // to be discarded
}

bool Stream::direct_places(PieceList& places, Time now) {
  if (Verdict v = receiver_.direct_places(places); !v.ok()) {
    fail_stream(v.error(), last_segment(), now);
    return false;
  }
  return true;
}

void Stream::direct_received(size_t n, Time now) {
  if (!ending_.live()) return;
  const uint64_t before = receiver_.fpdus();
  const Verdict v = receiver_.direct_received(n);
  counters().fpdus_received.add(receiver_.fpdus() - before);
  receive_path_.forget_place();
  after_input(v, now);
}

void Stream::received(Bytes bytes, Time now) {
  if (!takes_input()) return;
  const uint64_t before = receiver_.fpdus();
  const Verdict v = receiver_.received(bytes);
  counters().fpdus_received.add(receiver_.fpdus() - before);
  receive_path_.forget_place();
  after_input(v, now);
}

void Stream::after_input(const Verdict& v, Time now) {
  opening_.received();
  if (!config_.mpa.extension) ending_.fin_not_before(now + kFinSettles);
  if (opening_.silent() && receiver_.fpdus() > 0) end_silence();
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
  if (!opening_.end_silence()) return;
  if (ending_.state() == Ending::State::open) consumer_.stream_ready();
}

void Stream::peer_closed(Time now) {
  if (takes_input() && !receiver_.at_boundary()) {
    connection_lost();
    return;
  }
  // It may still listen: the FPDU that is on its way is sent to its end (spec/rdmap 5.4).
  const bool live = ending_.live();
  const bool closing = ending_.closing();
  ending_.on(Ending::Event::peer_fin, now);
  if (live && ended())
    tell_end(closing ? work::StreamEnd::Kind::closed : work::StreamEnd::Kind::peer_closed, {});
}

void Stream::connection_lost(bool unanswered) {
  const bool live = ending_.live();
  // All was said; the peer closed without listening to the end.
  const bool said = ending_.closing() && ending_.shut();
  ending_.end();
  if (!live) return;
  if (said) return tell_end(work::StreamEnd::Kind::closed, {});
  tell_end(unanswered ? work::StreamEnd::Kind::unanswered : work::StreamEnd::Kind::lost,
           term::kMpaConnectionLost);
}

void Stream::source_lost(const void* address) {
  if (!ending_.live()) return;
  // Behind leave() the requests are no more.
  if (takes_input()) send_path_.blame_source(address);
  // The bytes are missing from the stream: no FPDU can follow them.
  finish(work::StreamEnd::Kind::local_error, term::kLocalCatastrophic);
}

// What it would have said: a Read of it is answered with an error (spec/errors 3.4). The Terminate
// itself cannot follow bytes that are missing. Its own Sends and Writes are its own business.
void Stream::peer_source_lost() {
  if (!ending_.live()) return;
  if (!takes_input()) return connection_lost();
  // The segment may not have been shown to DDP yet.
  std::optional<Stag> sink;
  if (const Bytes begun = receiver_.begun(); begun.size() >= TaggedHeader::kSize) {
    const auto h = TaggedHeader::parse(begun.data());
    if (h.control.tagged && h.control.opcode == Opcode::read_response) sink = h.stag;
  } else if (segments_.segment_valid() &&
             segments_.segment().control.opcode == Opcode::read_response) {
    sink = segments_.segment().stag;
  }
  const OutboundRead* read = sink ? send_path_.reads().find(*sink) : nullptr;
  if (read == nullptr || read->request == OutboundRead::kNoRequest) {
    connection_lost();
    return;
  }
  send_path_.blame(read->request, work::Status::remote_access);
  finish(work::StreamEnd::Kind::terminated, work::read_fault(work::MemoryFault::gone));
}

// --- ways to end

void Stream::tell_end(work::StreamEnd::Kind kind, wire::TermError error) {
  if (std::exchange(consumer_gone_, true)) return;
  stats::count(engine_counters().stream_end, kind);
  consumer_.stream_ended({.kind = kind, .error = error});
}

void Stream::finish(work::StreamEnd::Kind kind, wire::TermError error) {
  ending_.end();
  tell_end(kind, error);
}

Quote Stream::last_segment() const {
  return segments_.segment_valid() ? receive_path_.quote(segments_.segment()) : Quote{};
}

void Stream::count_refusal(wire::TermError error) {
  stats::count(engine_counters().refused, error.why);
}

void Stream::fail_stream(wire::TermError error, const Quote& about, Time now) {
  count_refusal(error);
  const ddp::Segment* s = about.segment;
  // A Terminate is never answered, not even a wrong one (RFC 5040 section 7).
  if (s != nullptr && s->control.opcode == Opcode::terminate) {
    finish(work::StreamEnd::Kind::lost, error);
    return;
  }
  const bool own = error == term::kLocalCatastrophic || receive_path_.own_fault();
  terminate(about.answer(error),
            own ? work::StreamEnd::Kind::local_error : work::StreamEnd::Kind::protocol_error, now);
}

void Stream::terminate(const wire::Terminate& t, work::StreamEnd::Kind kind, Time now) {
  own_terminate_ = std::make_unique<wire::Terminate>(t);
  ending_.on(Ending::Event::failed, now);
  opening_.stop();
  // The request is its own, and is flushed before the Terminate comes round.
  if (config_.own_peer && kind == work::StreamEnd::Kind::protocol_error)
    apply_blame(t, config_.mpa.extension, send_path_);
  tell_end(kind, t.error);
}

void Stream::on_terminate(const wire::Terminate& t, Time now) {
  ending_.on(Ending::Event::terminated, now);
  opening_.stop();
  stats::count(engine_counters().terminate_received, wire::index_of(t.error));
  config_.counters.qp->terminate({.received = true, .error = t.error});
  apply_blame(t, config_.mpa.extension, send_path_);
  tell_end(work::StreamEnd::Kind::terminated, t.error);
}

// One of our own requests cannot be carried out.
void Stream::check_own_requests(Time now) {
  if (!takes_input() || !send_path_.failed()) return;
  terminate({.error = term::kLocalCatastrophic}, work::StreamEnd::Kind::local_error, now);
}

void Stream::receives_posted(Time now) {
  if (!takes_input()) return;
  const auto moved = receive_path_.receives_posted();
  if (!moved.ok()) {
    fail_stream(moved.error(), receive_path_.quote_waiting(), now);
  } else if (!receive_path_.waits_for_receive()) {
    receive_wanted_until_ = Time::never();
  } else if (*moved && !receive_wanted_until_.is_never()) {
    receive_wanted_until_ = now + config_.rnr_wait;  // another message is first in line now
  }
}

void Stream::close(Time now) {
  if (ending_.state() != Ending::State::open) return;
  ending_.on(Ending::Event::close, now);
  opening_.skip_write();
  send_path_.close();
}

void Stream::leave(Time now) {
  consumer_gone_ = true;
  if (ended()) return;
  ending_.on(Ending::Event::leave, now);
  opening_.stop();
  receive_wanted_until_ = Time::never();
}

void Stream::abort(Time now) {
  consumer_gone_ = true;
  if (ended()) return;
  if (opening_.silent()) {
    ending_.end();  // no FPDU may go out yet
    return;
  }
  terminate({.error = term::kLocalCatastrophic}, work::StreamEnd::Kind::local_error, now);
}

Stream::Wish Stream::wish() const {
  if (!rtr_settled() && !over()) return Wish::none;
  // After leave() the send queue is gone: only a stream that drains looks at it.
  const bool said = ending_.state() == Ending::State::draining && send_path_.drained() &&
                    responses_.empty() && !owes_delivered();
  return ending_.wish(said);
}

void Stream::write_side_shut(Time now) {
  opening_.stop_kicks();
  ending_.on(Ending::Event::shut, now);
}

// --- time

Time Stream::deadline() const {
  if (over()) return ending_.deadline();
  const Time own = std::min(ending_.deadline(), opening_.deadline(ending_.live() || waking_peer()));
  return takes_input() ? earliest(own, receive_wanted_until_, send_path_.rnr_deadline()) : own;
}

void Stream::tick(Time now) {
  opening_.settle(now);
  if (const auto kind = ending_.tick(now)) {
    tell_end(*kind,
             *kind == work::StreamEnd::Kind::lost ? term::kMpaConnectionLost : wire::TermError{});
  }
  if ((ending_.live() || waking_peer()) && opening_.kick_due(now)) {
    engine_counters().kicks.add();
    send_path_.add_empty_write(false);
  }
  if (!takes_input()) return;
  if (opening_.silence_due(now)) end_silence();
  if (opening_.write_due(now) && !send_path_.ready()) send_path_.add_empty_write(false);
  if (now >= receive_wanted_until_) {
    receive_wanted_until_ = Time::never();
    fail_stream(term::kUntaggedNoBuffer.because(wire::Refusal::no_receive_in_time),
                receive_path_.quote_waiting(), now);
    return;
  }
  if (now >= send_path_.rnr_deadline()) {
    send_path_.blame_waiting(work::Status::rnr_retry_exceeded);
    terminate({.error = term::kLocalCatastrophic}, work::StreamEnd::Kind::local_error, now);
  }
}

// --- bytes out: answers and requests by turns, never one message inside another (spec/rdmap 2.2,
// 3.1)

Stream::Output Stream::output() {
  if (ending_.terminating()) {
    const bool due = ending_.state() == Ending::State::terminate_due;
    return (waking_peer() ? owes_kick() : due) ? Output::ready : Output::none;
  }
  if (over() || opening_.silent() || ending_.shut()) return Output::none;
  if (ending_.leaving()) {
    return owes_delivered() || owes_kick() ? Output::ready : Output::none;
  }
  if (opening_.owes_rtr() || !responses_.empty() || send_path_.ready() || send_path_.failed()) {
    return Output::ready;
  }
  if (!owes_delivered()) return Output::none;
  return ending_.closing() || delivery_.due() == Delivery::Due::now ? Output::ready
                                                                    : Output::deferrable;
}

// Before our FIN the peer is told how far it came, asked or not (spec/rdmap 4.3): what is not
// covered by then fails.
bool Stream::owes_delivered() const {
  return config_.mpa.extension &&
         (delivery_.due() != Delivery::Due::nothing || (ending_.closing() && delivery_.untold()));
}

void Stream::fill(mpa::TxBatch& batch, Time now) {
  const uint32_t before = writer_.fpdus();
  write_output(batch, now);
  counters().fpdus_sent.add(writer_.fpdus() - before);
}

void Stream::write_output(mpa::TxBatch& batch, Time now) {
  if (ending_.terminating()) {
    if (waking_peer() && owes_kick()) send_path_.write_empty_write(writer_, batch);
    write_terminate(batch, now);
    return;
  }
  if (over() || opening_.silent() || ending_.shut()) return;
  if (ending_.leaving()) {
    if (owes_delivered()) write_delivered(batch);
    if (owes_kick()) send_path_.write_empty_write(writer_, batch);
    return;
  }
  write_messages(batch, now);
  check_own_requests(now);
  // The stream may have failed over what it was about to say.
  if (ending_.terminating()) write_terminate(batch, now);
  if (!batch.empty() && opening_.wrote(now)) ending_.fin_not_before(now + kUnheardSettles);
}

void Stream::write_messages(mpa::TxBatch& batch, Time now) {
  if (opening_.owes_rtr()) {
    write_rtr(batch);
    opening_.rtr_written(now);
  }
  if (owes_delivered() && !write_delivered(batch)) return;
  for (;;) {
    if (responses_.in_message()) {
      if (!write_response(batch, now)) return;
      continue;
    }
    if (send_path_.in_message()) {
      if (!send_path_.write_fpdu(writer_, batch)) return;
      continue;
    }
    const bool requests = send_path_.ready(&batch);
    if (!responses_.empty() && (!requests || responses_in_row_ < kMostResponsesInRow)) {
      ++responses_in_row_;
      if (!write_response(batch, now)) return;
    } else if (requests) {
      responses_in_row_ = 0;
      if (!send_path_.write_fpdu(writer_, batch)) return;
    } else {
      return;
    }
  }
}

void Stream::write_rtr(mpa::TxBatch& batch) {
  switch (config_.mpa.rtr) {
    case mpa::Rtr::write:
      send_path_.add_empty_write(false);
      send_path_.write_fpdu(writer_, batch);
      break;
    case mpa::Rtr::read:
      send_path_.write_rtr_read(writer_, batch);
      break;
    case mpa::Rtr::fpdu:
      writer_.write(batch, {});
      break;
    case mpa::Rtr::none:
      break;
  }
}

bool Stream::write_delivered(mpa::TxBatch& batch) {
  if (!writer_.fits(batch, TaggedHeader::kSize, 0, 0)) return false;
  std::byte header[TaggedHeader::kSize];
  const uint32_t stag =
      delivery_.is_waiting() ? wire::kDeliveredWaiting | (config_.min_rnr_timer & 31U) : 0;
  TaggedHeader{.control = {.tagged = true, .last = true, .opcode = Opcode::delivered},
               .stag = Stag{stag},
               .to = TaggedOffset{delivery_.run()}}
      .encode(header);
  writer_.write(batch, header);
  if (delivery_.is_waiting()) counters().rnr_sent.add();
  delivery_.sent();
  return true;
}

bool Stream::write_response(mpa::TxBatch& batch, Time now) {
  const auto written = responses_.write(writer_, batch);
  if (written == ResponsePath::Written::refused) {
    const wire::Terminate t = responses_.refusal();
    count_refusal(t.error);
    terminate(t, work::StreamEnd::Kind::protocol_error, now);
  }
  return written == ResponsePath::Written::yes;
}

void Stream::write_terminate(mpa::TxBatch& batch, Time now) {
  if (ending_.state() != Ending::State::terminate_due || !rtr_settled()) return;
  // What is covered tells the peer which of its requests is to blame (spec/rdmap 4.3).
  if (config_.mpa.extension) write_delivered(batch);
  std::byte message[UntaggedHeader::kSize + wire::Terminate::kMaxSize];
  UntaggedHeader{
      .control = {.last = true, .opcode = Opcode::terminate}, .qn = kTerminateQueue, .msn = Msn{1}}
      .encode(message);
  const size_t size = own_terminate_->encode(message + UntaggedHeader::kSize);
  const Bytes whole{message, UntaggedHeader::kSize + size};
  if (!writer_.fits(batch, whole.size(), 0, 0)) return;
  writer_.write(batch, whole);
  ending_.on(Ending::Event::terminate_written, now);
  stats::count(engine_counters().terminate_sent, wire::index_of(own_terminate_->error));
  config_.counters.qp->terminate({.received = false, .error = own_terminate_->error});
}

void Stream::llp_took_all(Time now) {
  if (!takes_input()) return;
  // Closing is patient as long as own requests move on; answers alone could go on for ever.
  if (ending_.closing() && send_path_.fpdus() != drained_fpdus_) {
    drained_fpdus_ = send_path_.fpdus();
    ending_.on(Ending::Event::moved, now);
  }
  send_path_.llp_took_all();
  check_own_requests(now);
}

}  // namespace weft::rdmap
