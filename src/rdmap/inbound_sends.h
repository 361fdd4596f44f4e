// Sends and Immediates of the peer in the receives that they take: what RDMAP does with the
// untagged buffers of queue 0 (RFC 5040 section 5.3, RFC 5041 section 7.1, RFC 7306 section 6). A
// Send arrives segment by segment, one at a time (spec/rdmap 2.2); it takes a receive with its
// first segment, or waits for one among the EarlyArrivals.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "ddp/segment.h"
#include "mpa/ulpdu_sink.h"
#include "rdmap/early_arrivals.h"
#include "work/consumer.h"
#include "work/pieces.h"

namespace weft::rdmap {

// Engine holder only. An error ends the stream, with that Terminate; the receive at fault is
// complete then.
class InboundSends {
 public:
  using Verdict = mpa::Verdict;
  explicit InboundSends(work::Consumer& consumer) : consumer_(consumer) {}

  // Whose receives they are.
  work::Consumer& consumer() { return consumer_; }
  // The next receive, for a message that is there; false when there is none.
  bool take(work::Receive& receive) { return consumer_.take_receive(receive); }

  // --- the Send that is arriving
  bool arriving() const { return arriving_; }
  // It has no receive: its bytes go to the last of the EarlyArrivals.
  bool early() const { return early_; }
  // Its bytes before the current segment.
  uint64_t bytes_before() const { return placed_; }
  // One begins with this opcode. It takes the next receive if it `may`, and there is one; it is
  // early otherwise.
  void begin(wire::Opcode opcode, bool may) {
    if (receive_ == nullptr) receive_ = std::make_unique<work::Receive>();
    early_ = !may || !consumer_.take_receive(*receive_);
    arriving_ = true;
    opcode_ = opcode;
    placed_ = 0;
  }
  // Its next segment, the first among them.
  Verdict open(const ddp::Segment& s) {
    if (s.control.opcode != opcode_) {
      return fail(wire::term::kOperationUnexpectedOpcode.because(wire::Refusal::opcode_changed));
    }
    // RFC 5041 section 7.1: a message longer than its buffer.
    if (!early_ && placed_ + s.payload > receive_->length) return fail_too_long();
    return Ok{};
  }
  // Where bytes [offset, offset + length) of the segment's payload belong. Not while early().
  Verdict where(size_t offset, size_t length, PieceList& places) {
    Verdict v = receive_pieces(*receive_, placed_ + offset, length, places);
    if (!v.ok()) arriving_ = false;
    return v;
  }
  // The receive's memory cannot be reached.
  wire::TermError unreachable();
  // The segment is in its place.
  void placed(const ddp::Segment& s) {
    placed_ += s.payload;
    if (s.control.last) arriving_ = false;
  }
  // And was the last one: not while early().
  Verdict deliver(const ddp::Segment& s) { return complete(s, *receive_, placed_); }
  // The receive of one that will never be complete, so that it can be flushed.
  std::optional<work::Receive> abandon();
  // The half kilobyte of a receive goes where Sends come no more.
  void trim() {
    if (!arriving_) receive_.reset();
  }

  // --- those that waited: now there is a receive for them
  // All of it is there: completes the receive. Otherwise the rest is going to follow, into this
  // receive.
  Verdict accept(const EarlyArrival& send, const work::Receive& receive);
  // `payload`: of wire::Immediate::kSize bytes. `length`: of the Write before it.
  void complete_immediate(const ddp::Segment& s, const work::Receive& receive, Bytes payload,
                          uint32_t length);

  // The last failure was that of a receive of our own, not of the peer.
  bool own_fault() const { return own_fault_; }

 private:
  Verdict fail_too_long();
  Verdict complete(const ddp::Segment& first, const work::Receive& receive, uint64_t length);
  Verdict fill(const EarlyArrival& send, const work::Receive& receive);
  Verdict receive_pieces(const work::Receive& receive, uint64_t offset, size_t length,
                         PieceList& places) {
    if (work::receive_pieces(consumer_.memory(), receive, offset, length, places).ok()) return Ok{};
    return lose(receive);
  }
  Verdict fail_receive(const work::Receive& receive, work::Status status, wire::TermError error);
  Verdict lose(const work::Receive& receive);

  work::Consumer& consumer_;
  bool arriving_ = false;
  bool early_ = false;
  bool own_fault_ = false;
  wire::Opcode opcode_{};
  uint64_t placed_ = 0;
  std::unique_ptr<work::Receive> receive_;  // half a kilobyte: only where Sends come
};

}  // namespace weft::rdmap
