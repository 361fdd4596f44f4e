// What a stream says, and in which order: answers and requests by turns, never one message inside
// another (spec/rdmap 2.2, 3.1).

#include <algorithm>

#include "rdmap/faults.h"
#include "rdmap/stream.h"

namespace weft::rdmap {

using wire::Opcode;
using wire::TaggedHeader;
using wire::UntaggedHeader;

namespace {
constexpr uint32_t kMostResponsesInRow = 4;  // while own requests wait (spec/rdmap 2.2)
}  // namespace

Stream::Output Stream::output() {
  if (state_ == State::terminating) {
    if (waking_peer()) return owes_kick() ? Output::ready : Output::none;
    return own_terminate_ && !terminate_written_ ? Output::ready : Output::none;
  }
  if (state_ == State::ended || silent_ || shutdown_done_) return Output::none;
  if (leaving_) {
    return owes_delivered() || owes_kick() ? Output::ready : Output::none;
  }
  if (rtr_pending_ || in_response_ || !inbound_.empty() || send_path_.ready() ||
      send_path_.failed()) {
    return Output::ready;
  }
  if (!owes_delivered()) return Output::none;
  return state_ == State::closing || delivery_.due() == Delivery::Due::now ? Output::ready
                                                                           : Output::deferrable;
}

// Before our FIN the peer is told how far it came, asked or not (spec/rdmap 4.3): what is not
// covered by then fails.
bool Stream::owes_delivered() const {
  return config_.mpa.extension && (delivery_.due() != Delivery::Due::nothing ||
                                   (state_ == State::closing && delivery_.untold()));
}

void Stream::fill(mpa::TxBatch& batch, Time now) {
  const uint32_t before = writer_.fpdus();
  write_output(batch, now);
  counters().fpdus_sent.add(writer_.fpdus() - before);
}

void Stream::write_output(mpa::TxBatch& batch, Time now) {
  if (state_ == State::terminating) {
    if (waking_peer() && owes_kick()) send_path_.write_empty_write(writer_, batch);
    write_terminate(batch);
    return;
  }
  if (state_ == State::ended || silent_ || shutdown_done_) return;
  if (leaving_) {
    if (owes_delivered()) write_delivered(batch);
    if (owes_kick()) send_path_.write_empty_write(writer_, batch);
    return;
  }
  write_messages(batch, now);
  check_own_requests(now);
  // The stream may have failed over what it was about to say.
  if (state_ == State::terminating) write_terminate(batch);
  if (!sent_fpdu_ && !batch.empty()) {
    sent_fpdu_ = true;
    opening_write_at_ = Time::never();
    first_fpdu_at_ = now;
    if (config_.initiator && !config_.mpa.extension && !received_any_) {
      schedule_kick();
      fin_settles_at_ = now + kUnheardSettles;
    }
  }
}

void Stream::write_messages(mpa::TxBatch& batch, Time now) {
  if (rtr_pending_) {
    write_rtr(batch);
    rtr_pending_ = false;
    if (!config_.mpa.extension) rtr_settles_at_ = now + kRtrSettles;
  }
  if (owes_delivered() && !write_delivered(batch)) return;
  for (;;) {
    if (in_response_) {
      if (!write_response(batch, now)) return;
      continue;
    }
    if (send_path_.in_message()) {
      if (!send_path_.write_fpdu(writer_, batch)) return;
      continue;
    }
    const bool requests = send_path_.ready();
    if (!inbound_.empty() && (!requests || responses_in_row_ < kMostResponsesInRow)) {
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
  InboundRead& answer = inbound_.front();
  if (!answer.atomic) return write_read_response(answer, batch, now);
  constexpr size_t kSize = UntaggedHeader::kSize + wire::AtomicResponse::kSize;
  if (!writer_.fits(batch, kSize, 0, 0)) return false;
  std::byte header[kSize];
  UntaggedHeader{.control = {.last = true, .opcode = Opcode::atomic_response},
                 .qn = kAtomicResponseQueue,
                 .msn = atomic_response_msn_}
      .encode(header);
  answer.response.encode(header + UntaggedHeader::kSize);
  writer_.write(batch, header);
  atomic_response_msn_ = next(atomic_response_msn_);
  inbound_.pop_front();
  return true;
}

bool Stream::write_read_response(InboundRead& read, mpa::TxBatch& batch, Time now) {
  const wire::ReadRequest& r = read.request;
  const uint32_t n = std::min(r.size - read.sent, response_payload_);
  if (!writer_.fits(batch, TaggedHeader::kSize, n, 1)) return false;
  PieceList pieces;
  if (n > 0) {
    // Looked up for every FPDU: the region may have been deregistered since the request was
    // accepted.
    const auto p =
        consumer_.memory().remote(r.source_stag, r.source_to + read.sent, n, Access::remote_read);
    if (!p.ok()) {
      refuse_read(read, read_fault(p.error()), now);
      return false;
    }
    pieces.add(*p, n);
  }
  const bool last = read.sent + n == r.size;
  std::byte header[TaggedHeader::kSize];
  TaggedHeader{.control = {.tagged = true, .last = last, .opcode = Opcode::read_response},
               .stag = r.sink_stag,
               .to = r.sink_to + read.sent}
      .encode(header);
  if (!writer_.write(batch, header, pieces.pieces())) {
    refuse_read(read, read_fault(MemoryFault::gone), now);
    return false;
  }
  counters().sent(stats::Kind::read, n);
  read.sent += n;
  in_response_ = !last;
  if (last) inbound_.pop_front();
  return true;
}

// In the middle of its answer.
void Stream::refuse_read(const InboundRead& read, wire::TermError error, Time now) {
  wire::Terminate t{.error = error, .has_segment_length = true};
  count_refusal(t.error);
  t.segment_length = static_cast<uint16_t>(read.headers.size());
  t.ddp_header_size = UntaggedHeader::kSize;
  t.rdmap_header_size = wire::ReadRequest::kSize;
  std::copy_n(read.headers.begin(), UntaggedHeader::kSize, t.ddp_header.begin());
  std::copy_n(read.headers.begin() + UntaggedHeader::kSize, wire::ReadRequest::kSize,
              t.rdmap_header.begin());
  begin_terminate(t, now);
  end(StreamEnd::Kind::protocol_error, t.error);
}

void Stream::write_terminate(mpa::TxBatch& batch) {
  if (!own_terminate_ || terminate_written_ || !rtr_settled()) return;
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
  terminate_written_ = true;
  stats::count(engine_counters().terminate_sent, wire::index_of(own_terminate_->error));
  config_.counters.qp->terminate({.received = false, .error = own_terminate_->error});
}

void Stream::llp_took_all(Time now) {
  if (!input_live() || leaving_) return;
  // Closing is patient as long as own requests move on; answers alone could go on for ever.
  if (state_ == State::closing && !shutdown_done_ && send_path_.fpdus() != drained_fpdus_) {
    drained_fpdus_ = send_path_.fpdus();
    drain_over_ = false;
    linger_until_ = now + kLinger;
  }
  send_path_.llp_took_all();
  check_own_requests(now);
}

}  // namespace weft::rdmap
