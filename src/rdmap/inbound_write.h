// The RDMA Write of the peer's that is arriving (RFC 5040 section 5.1), segment by segment; there
// is one at a time (spec/rdmap 2.2). It takes no receive and completes nothing. What stays of it is
// its length, for an Immediate right behind it (spec/rdmap 1.6).
#pragma once

#include <utility>

#include "ddp/segment.h"
#include "mpa/ulpdu_sink.h"
#include "work/consumer.h"
#include "work/faults.h"

namespace weft::rdmap {

// Engine holder only. An error ends the stream, with that Terminate.
class InboundWrite {
 public:
  // Its next segment. STag, bounds and rights are checked for every segment before a byte of it is
  // placed (RFC 5041 section 7.1).
  mpa::Verdict open(work::Consumer& consumer, const ddp::Segment& s) {
    // RFC 5041 section 5.2: no message is longer than 2^32 - 1 bytes.
    if (length_ + s.payload > UINT32_MAX) {
      return fail(wire::term::kTaggedBounds.because(wire::Refusal::message_too_long));
    }
    // A message of no bytes names no memory: its STag is not looked at (RFC 5041 section 5.2,
    // spec/rdmap 2.4).
    if (s.payload == 0) return Ok{};
    const auto p = consumer.memory().remote(s.stag, s.to, s.payload, work::Access::remote_write);
    if (!p.ok()) return fail(work::write_fault(p.error()));
    opened_ = *p;
    return Ok{};
  }
  // The place that the last segment was opened for is good until somebody may deregister it: until
  // the end of the call that brought the segment. Then it is asked for again.
  void forget_place() { opened_ = nullptr; }
  // Where bytes [offset, offset + length) of the segment's payload belong.
  mpa::Verdict where(work::Consumer& consumer, const ddp::Segment& s, size_t offset, size_t length,
                     PieceList& places) const {
    if (opened_ != nullptr) {
      places.add(opened_ + offset, length);
      return Ok{};
    }
    const auto p =
        consumer.memory().remote(s.stag, s.to + offset, length, work::Access::remote_write);
    if (!p.ok()) return fail(work::write_fault(p.error()));
    places.add(*p, length);
    return Ok{};
  }
  // The place cannot be reached.
  static wire::TermError unreachable() { return work::write_fault(work::MemoryFault::gone); }
  // A segment of so many bytes is in its place.
  void placed(uint32_t bytes) { length_ += bytes; }
  // And it was the last one.
  void complete() { preceding_ = static_cast<uint32_t>(std::exchange(length_, 0)); }

  // The bytes of the Write right before this on the stream; 0 where something else was between, or
  // it was asked for already.
  uint32_t take_preceding() { return std::exchange(preceding_, 0); }
  // Another message came.
  void forget_preceding() { preceding_ = 0; }

 private:
  std::byte* opened_ = nullptr;
  uint64_t length_ = 0;  // of the Write that is arriving
  uint32_t preceding_ = 0;
};

}  // namespace weft::rdmap
