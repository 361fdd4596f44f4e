// Where one untagged queue stands on a stream that keeps order: which message, which byte of it
// comes next (RFC 5041 section 5.3; spec/rdmap 2.1).
#pragma once

#include "ddp/segment.h"
#include "mpa/ulpdu_sink.h"

namespace weft::ddp {

class UntaggedQueue {
 public:
  // `first`: RFC 5041 section 4.3 begins at 1.
  explicit UntaggedQueue(Msn first = Msn{1}) : msn_(first) {}

  // RFC 5041 section 7.1: the MSN must be the next one and the offset must continue the message.
  mpa::Verdict check(const Segment& s) const {
    using wire::Refusal;
    if (s.msn != msn_) return fail(wire::term::kUntaggedMsnRange.because(Refusal::msn));
    if (s.mo != mo_) {
      return fail(wire::term::kUntaggedInvalidMo.because(Refusal::message_offset));
    }
    // A message ends at 2^32 - 1 bytes, before its offset wraps.
    if (s.mo.value() + uint64_t{s.payload} > UINT32_MAX) {
      return fail(wire::term::kUntaggedTooLong.because(Refusal::message_too_long));
    }
    return Ok{};
  }
  // `s` is placed and delivered.
  void advance(const Segment& s) {
    if (s.control.last) {
      msn_ = next(msn_);
      mo_ = MessageOffset{0};
    } else {
      mo_ = mo_ + s.payload;
    }
  }
  Msn expected() const { return msn_; }

 private:
  Msn msn_;
  MessageOffset mo_{0};
};

}  // namespace weft::ddp
