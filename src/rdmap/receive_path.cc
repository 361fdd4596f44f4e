#include "rdmap/receive_path.h"

#include <algorithm>

#include "work/pieces.h"

namespace weft::rdmap {

namespace term = wire::term;
using ddp::Segment;
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
    : consumer_(consumer),
      config_(config),
      inbound_(inbound),
      delivery_(delivery),
      responses_(send_path) {}

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
  if (message_.active && config_.mpa.extension) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::write_inside_send));
  }
  return write_.open(consumer_, s);
}

Verdict ReceivePath::open_control(const Segment& s, size_t size) {
  // Nothing untagged may stand inside a Send (spec/rdmap 2.2); it would have to be parked behind a
  // message without end.
  if (message_.active && s.qn != kAtomicResponseQueue) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::request_inside_send));
  }
  if (s.mo.value() != 0 || !s.control.last || s.payload != size) {
    return fail(term::kUntaggedTooLong.because(Refusal::request_malformed));
  }
  return Ok{};
}

Verdict ReceivePath::open_send(const Segment& s) {
  if (!message_.active) {
    if (message_.receive == nullptr) message_.receive = std::make_unique<work::Receive>();
    message_.early = !early_.empty() || !consumer_.take_receive(*message_.receive);
    message_.active = true;
    message_.opcode = s.control.opcode;
    message_.placed = 0;
    if (message_.early) park(EarlyArrival::Kind::send, s);
  }
  if (s.control.opcode != message_.opcode) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::opcode_changed));
  }
  if (message_.early) {
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
  // RFC 5041 section 7.1: a message longer than its buffer.
  if (message_.placed + s.payload > message_.receive->length) {
    message_.active = false;
    return fail_receive(*message_.receive, work::Status::local_length,
                        term::kUntaggedTooLong.because(Refusal::receive_too_short));
  }
  return Ok{};
}

bool ReceivePath::early_full() const {
  return early_.bytes() >= 2 * kSendCredit || early_.full() ||
         (!config_.mpa.extension && early_.bytes() >= kSendCredit);
}

Verdict ReceivePath::fail_receive(const work::Receive& r, work::Status status,
                                  wire::TermError error) {
  consumer_.receive_done(r, status, work::Arrival{});
  return fail(error);
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
      return write_.where(consumer_, s, offset, length, places);
    case Opcode::read_response:
      return responses_.where_read(offset, length, places);
    default:
      break;
  }
  if (!wire::is_send(s.control.opcode)) {
    places.add(control_.data() + offset, length);
    return Ok{};
  }
  if (message_.early) {
    auto& data = early_.back().data;
    places.add(data.data() + message_.placed + offset, length);
    return Ok{};
  }
  Verdict v = receive_pieces(*message_.receive, message_.placed + offset, length, places);
  if (!v.ok()) message_.active = false;
  return v;
}

Verdict ReceivePath::receive_pieces(const work::Receive& r, uint64_t offset, size_t length,
                                    PieceList& places) {
  if (work::receive_pieces(consumer_.memory(), r, offset, length, places).ok()) return Ok{};
  return lose_receive(r);
}

// Our own program's fault, but the peer's request is what fails: it sees a remote operation error,
// as on InfiniBand.
Verdict ReceivePath::lose_receive(const work::Receive& r) {
  own_fault_ = true;
  return fail_receive(r, work::Status::local_protection,
                      term::kOperationCatastrophicStream.because(Refusal::own_receive_memory));
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
  message_.active = false;
  return lose_receive(*message_.receive).error();
}

std::optional<work::Receive> ReceivePath::abandon_receive() {
  if (!std::exchange(message_.active, false) || message_.early) return {};
  return *message_.receive;
}

}  // namespace weft::rdmap
