// The second half of ReceivePath: what becomes of a message whose last byte is in its place, and of
// those that waited for a receive.

#include <algorithm>

#include "base/guarded.h"
#include "rdmap/receive_path.h"
#include "work/faults.h"

namespace weft::rdmap {

namespace term = wire::term;
using ddp::Segment;
using stats::Kind;
using wire::Opcode;
using wire::Refusal;

Verdict ReceivePath::deliver(const Segment& s) {
  switch (s.control.opcode) {
    case Opcode::write:
      return deliver_write(s);
    case Opcode::read_response:
      counters().received(Kind::read, s.payload);
      responses_.read_placed(s);
      return Ok{};
    case Opcode::immediate:
    case Opcode::immediate_se:
      return deliver_immediate(s);
    case Opcode::read_request:
    case Opcode::atomic_request:
      return deliver_request(s);
    case Opcode::atomic_response:
      return responses_.deliver_atomic(control_.data());
    case Opcode::terminate:
      terminate_ = std::make_unique<wire::Terminate>(
          wire::Terminate::parse(Bytes{control_}.first(s.payload), config_.mpa.extension, true));
      return Ok{};
    case Opcode::delivered:
      return responses_.deliver_report(s);
    default:
      return deliver_send(s);
  }
}

Verdict ReceivePath::deliver_write(const Segment& s) {
  write_.placed(s.payload);
  counters().received(Kind::write, s.payload);
  if (!s.control.last) return Ok{};
  counters().received(Kind::write);
  write_.complete();
  if (early_.empty()) {
    delivery_.accepted(s.control.ack_wanted);
  } else {
    // Placed, but not covered while a message before it waits.
    ++early_.back().followers;
    early_.back().followers_ack_wanted |= s.control.ack_wanted;
  }
  return Ok{};
}

Verdict ReceivePath::deliver_send(const Segment& s) {
  write_.forget_preceding();
  message_.placed += s.payload;
  counters().received(Kind::send, s.payload);
  if (!s.control.last) return Ok{};
  counters().received(Kind::send);
  message_.active = false;
  if (message_.early) {
    early_.back().complete = true;
    early_.back().ack_wanted = s.control.ack_wanted;
    return Ok{};
  }
  if (Verdict v = complete_send(s, *message_.receive, message_.placed); !v.ok()) return v;
  delivery_.accepted(s.control.ack_wanted);
  return Ok{};
}

Verdict ReceivePath::complete_send(const Segment& s, const work::Receive& r, uint64_t length) {
  const Opcode op = s.control.opcode;
  work::Arrival a{.solicited = wire::is_solicited(op),
                  .has_immediate = wire::send_carries_immediate(op),
                  .invalidated = wire::invalidates(op),
                  .length = static_cast<uint32_t>(length)};
  if (a.has_immediate) a.immediate = s.ulp_word;
  if (a.invalidated) {
    // RFC 5040 section 5.3: the STag is invalid before the ULP learns of the Send.
    a.invalidated_stag = Stag{s.ulp_word};
    if (const auto done = consumer_.memory().invalidate(a.invalidated_stag); !done.ok()) {
      return fail_receive(r, work::Status::flushed, invalidate_fault(done.error()));
    }
  }
  consumer_.receive_done(r, work::Status::success, a);
  return Ok{};
}

Verdict ReceivePath::deliver_immediate(const Segment& s) {
  const uint32_t length = write_.take_preceding();
  const Bytes payload = Bytes{control_}.first(wire::Immediate::kSize);
  work::Receive r;
  if (early_.empty() && consumer_.take_receive(r)) {
    complete_immediate(s, r, payload, length);
    delivery_.accepted(s.control.ack_wanted);
    return Ok{};
  }
  if (early_.full() && config_.mpa.extension) {
    return fail(term::kUntaggedNoBuffer.because(Refusal::credit_exceeded));
  }
  EarlyArrival& a = park(EarlyArrival::Kind::immediate, s);
  a.complete = true;
  a.ack_wanted = s.control.ack_wanted;
  a.write_length = length;
  std::copy(payload.begin(), payload.end(), early_.extend(payload.size()));
  return Ok{};
}

void ReceivePath::complete_immediate(const Segment& s, const work::Receive& r, Bytes payload,
                                     uint32_t length) {
  consumer_.receive_done(r, work::Status::success,
                         work::Arrival{.write_with_immediate = true,
                                       .solicited = wire::is_solicited(s.control.opcode),
                                       .has_immediate = true,
                                       .length = length,
                                       .immediate = wire::Immediate::parse(payload.data()).value});
}

Verdict ReceivePath::deliver_request(const Segment& s) {
  write_.forget_preceding();
  const bool atomic = s.control.opcode == Opcode::atomic_request;
  counters().received(atomic ? Kind::atomic : Kind::read);
  const Bytes payload = Bytes{control_}.first(s.payload);
  if (early_.empty()) {
    work::Memory& memory = consumer_.memory();
    const Verdict v = atomic ? inbound_.accept_atomic(memory, payload)
                             : inbound_.accept_read(memory, s.header_bytes(), payload);
    if (!v.ok()) return v;
    delivery_.accepted(s.control.ack_wanted);
    return Ok{};
  }
  // Those that wait count against the IRD like those that are being answered.
  if (inbound_.size() + early_.requests() >= inbound_.capacity()) {
    return fail(term::kOperationCatastrophicStream.because(Refusal::reads_beyond_ird));
  }
  EarlyArrival& a =
      park(atomic ? EarlyArrival::Kind::atomic_request : EarlyArrival::Kind::read_request, s);
  a.complete = true;
  a.ack_wanted = s.control.ack_wanted;
  std::copy(payload.begin(), payload.end(), early_.extend(payload.size()));
  return Ok{};
}

Result<bool, wire::TermError> ReceivePath::receives_posted() {
  bool moved = false;
  while (!early_.empty()) {
    EarlyArrival& a = early_.front();
    work::Receive r;
    const bool takes_receive =
        a.kind == EarlyArrival::Kind::send || a.kind == EarlyArrival::Kind::immediate;
    if (takes_receive && !consumer_.take_receive(r)) break;
    if (Verdict v = accept_early(a, r); !v.ok()) return fail(v.error());
    moved = true;
    if (a.complete) {
      delivery_.accepted(1, a.ack_wanted);
      delivery_.accepted(a.followers, a.followers_ack_wanted);
    }
    // Of one that is not complete the rest goes straight to its place, and it counts when its last
    // segment is there.
    early_.pop_front();
  }
  if (moved && config_.mpa.extension) delivery_.waiting(!early_.empty());
  return moved;
}

Verdict ReceivePath::accept_early(EarlyArrival& a, const work::Receive& r) {
  switch (a.kind) {
    case EarlyArrival::Kind::read_request:
      return inbound_.accept_read(consumer_.memory(), a.first.header_bytes(), a.data);
    case EarlyArrival::Kind::atomic_request:
      return inbound_.accept_atomic(consumer_.memory(), a.data);
    case EarlyArrival::Kind::immediate:
      complete_immediate(a.first, r, a.data, a.write_length);
      return Ok{};
    case EarlyArrival::Kind::send:
      break;
  }
  return accept_early_send(a, r);
}

Verdict ReceivePath::accept_early_send(EarlyArrival& a, const work::Receive& r) {
  if (!a.complete) {
    message_.early = false;
    *message_.receive = r;
  }
  PieceList places;
  Verdict v = a.data.size() > r.length
                  ? fail_receive(r, work::Status::local_length,
                                 term::kUntaggedTooLong.because(Refusal::receive_too_short))
                  : receive_pieces(r, 0, a.data.size(), places);
  if (!v.ok()) {
    if (!a.complete) message_.active = false;
    return v;
  }
  const std::byte* from = a.data.data();
  for (const IoVec& piece : places.pieces()) {
    if (!copy_guarded(piece.iov_base, from, piece.iov_len)) {
      if (!a.complete) message_.active = false;
      return lose_receive(r);
    }
    from += piece.iov_len;
  }
  return a.complete ? complete_send(a.first, r, a.data.size()) : Verdict{Ok{}};
}

}  // namespace weft::rdmap
