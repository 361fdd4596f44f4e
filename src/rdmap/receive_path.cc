#include "rdmap/receive_path.h"

#include <algorithm>

namespace weft::rdmap {

namespace term = wire::term;
using ddp::Segment;
using Early = EarlyArrival::Kind;
using stats::Kind;
using wire::Opcode;
using wire::Refusal;

namespace {

size_t request_size(Opcode op) {
  if (op == Opcode::read_request) return wire::ReadRequest::kSize;
  return op == Opcode::atomic_request ? wire::AtomicRequest::kSize : 0;
}

}  // namespace

ReceivePath::ReceivePath(work::Consumer& consumer, const StreamConfig& config, SendPath& send_path,
                         InboundReads& inbound, Delivery& delivery)
    : config_(config),
      inbound_(inbound),
      delivery_(delivery),
      responses_(send_path),
      sends_(consumer) {}

Verdict ReceivePath::check(const Segment& s) {
  // A Terminate ends the stream both ways: what stands behind it is not looked at (spec/errors 4).
  if (terminate_) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::behind_terminate));
  }
  return check_opcode(s, config_.mpa.extension);
}

Verdict ReceivePath::open(const Segment& s) {
  switch (s.control.opcode) {
    case Opcode::write:
      return open_write(s);
    case Opcode::read_response:
      return responses_.open_read(s);
    case Opcode::delivered:
      return InboundResponses::open_report(s);
    case Opcode::read_request:
      return open_control(s, wire::ReadRequest::kSize);
    case Opcode::atomic_request:
      return open_control(s, wire::AtomicRequest::kSize);
    case Opcode::atomic_response:
      return open_control(s, wire::AtomicResponse::kSize);
    case Opcode::immediate:
    case Opcode::immediate_se:
      return open_control(s, wire::Immediate::kSize);
    case Opcode::terminate:
      if (!s.control.last || s.payload > kControlSize) {
        return fail(term::kUntaggedTooLong.because(Refusal::terminate_malformed));
      }
      return Ok{};
    default:
      return open_send(s);
  }
}

// Messages do not interleave (spec/rdmap 2.2). Of plain peers it is tolerated, as siw does; of a
// weft peer it would break the count of what is delivered.
Verdict ReceivePath::open_write(const Segment& s) {
  if (sends_.arriving() && config_.mpa.extension) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::write_inside_send));
  }
  return write_.open(sends_.consumer(), s);
}

Verdict ReceivePath::open_control(const Segment& s, size_t size) {
  // Nothing untagged may stand inside a Send (spec/rdmap 2.2); it would have to be parked behind a
  // message without end.
  if (sends_.arriving() && s.qn != kAtomicResponseQueue) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::request_inside_send));
  }
  if (s.mo.value() != 0 || !s.control.last || s.payload != size) {
    return fail(term::kUntaggedTooLong.because(Refusal::request_malformed));
  }
  return Ok{};
}

Verdict ReceivePath::open_send(const Segment& s) {
  if (!sends_.arriving()) {
    sends_.begin(s.control.opcode, early_.empty());
    if (sends_.early()) park(Early::send, s);
  }
  if (Verdict v = sends_.open(s); !v.ok() || !sends_.early()) return v;
  // A weft peer keeps to the credit, but for one message that is larger (spec/rdmap 4.6).
  if (config_.mpa.extension && early_full() && early_.size() > 1) {
    return fail(term::kUntaggedNoBuffer.because(Refusal::credit_exceeded));
  }
  // No request of a program is longer.
  if (early_.back().data.size() + s.payload > work::kMostMessage) {
    return fail(term::kUntaggedTooLong.because(Refusal::message_too_long));
  }
  early_.extend(s.payload);
  return Ok{};
}

bool ReceivePath::early_full() const {
  return early_.bytes() >= 2 * kSendCredit || early_.full() ||
         (!config_.mpa.extension && early_.bytes() >= kSendCredit);
}

EarlyArrival& ReceivePath::park(EarlyArrival::Kind kind, const Segment& s) {
  const bool first = early_.empty();
  config_.counters.engine->counters.early_arrivals.add();
  EarlyArrival& a = early_.add(kind, s);
  // The sender must tell "no receive" from "slow path", and be told at once (spec/rdmap 4.5).
  if (first && config_.mpa.extension) delivery_.waiting(true);
  return a;
}

Verdict ReceivePath::where(const Segment& s, size_t offset, size_t length, PieceList& places) {
  switch (s.control.opcode) {
    case Opcode::write:
      return write_.where(sends_.consumer(), s, offset, length, places);
    case Opcode::read_response:
      return responses_.where_read(offset, length, places);
    default:
      break;
  }
  if (!wire::is_send(s.control.opcode)) {
    places.add(control_.data() + offset, length);
    return Ok{};
  }
  if (!sends_.early()) return sends_.where(offset, length, places);
  places.add(early_.back().data.data() + sends_.bytes_before() + offset, length);
  return Ok{};
}

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
  sends_.placed(s);
  counters().received(Kind::send, s.payload);
  if (!s.control.last) return Ok{};
  counters().received(Kind::send);
  if (sends_.early()) {
    early_.back().complete = true;
    early_.back().ack_wanted = s.control.ack_wanted;
    return Ok{};
  }
  if (Verdict v = sends_.deliver(s); !v.ok()) return v;
  delivery_.accepted(s.control.ack_wanted);
  return Ok{};
}

Verdict ReceivePath::deliver_immediate(const Segment& s) {
  const uint32_t length = write_.take_preceding();
  const Bytes payload = Bytes{control_}.first(wire::Immediate::kSize);
  work::Receive r;
  if (early_.empty() && sends_.take(r)) {
    sends_.complete_immediate(s, r, payload, length);
    delivery_.accepted(s.control.ack_wanted);
    return Ok{};
  }
  if (early_.full() && config_.mpa.extension) {
    return fail(term::kUntaggedNoBuffer.because(Refusal::credit_exceeded));
  }
  EarlyArrival& a = park(Early::immediate, s);
  a.complete = true;
  a.ack_wanted = s.control.ack_wanted;
  a.write_length = length;
  std::copy(payload.begin(), payload.end(), early_.extend(payload.size()));
  return Ok{};
}

Verdict ReceivePath::deliver_request(const Segment& s) {
  write_.forget_preceding();
  const bool atomic = s.control.opcode == Opcode::atomic_request;
  counters().received(atomic ? Kind::atomic : Kind::read);
  const Bytes payload = Bytes{control_}.first(s.payload);
  if (early_.empty()) {
    work::Memory& memory = sends_.consumer().memory();
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
  EarlyArrival& a = park(atomic ? Early::atomic_request : Early::read_request, s);
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
    const bool takes_receive = a.kind == Early::send || a.kind == Early::immediate;
    if (takes_receive && !sends_.take(r)) break;
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
    case Early::read_request:
      return inbound_.accept_read(sends_.consumer().memory(), a.first.header_bytes(), a.data);
    case Early::atomic_request:
      return inbound_.accept_atomic(sends_.consumer().memory(), a.data);
    case Early::immediate:
      sends_.complete_immediate(a.first, r, a.data, a.write_length);
      return Ok{};
    case Early::send:
      break;
  }
  return sends_.accept(a, r);
}

Quote ReceivePath::quote(const Segment& s) const {
  const size_t size = request_size(s.control.opcode);
  // One of another size was not taken in.
  if (size == 0 || s.payload != size) return {.segment = &s};
  return {.segment = &s, .request = Bytes{control_}.first(size)};
}

Quote ReceivePath::quote_waiting() const {
  const EarlyArrival& a = early_.front();
  if (request_size(a.first.control.opcode) == 0) return {.segment = &a.first};
  return {.segment = &a.first, .request = a.data};
}

wire::TermError ReceivePath::unreachable(const Segment& s) {
  if (s.control.opcode == Opcode::write) return InboundWrite::unreachable();
  if (s.control.opcode == Opcode::read_response) return responses_.unreachable();
  return sends_.unreachable();
}

}  // namespace weft::rdmap
