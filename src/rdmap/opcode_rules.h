// Which message of RDMAP may come in which kind of segment (RFC 5040 sections 4.1 and 7.2, RFC 7306
// section 4, spec/rdmap 1.4). Nothing here depends on what came before.
#pragma once

#include "ddp/segment.h"
#include "mpa/ulpdu_sink.h"
#include "wire/opcode.h"

namespace weft::rdmap {

// The untagged queue that carries such messages; the Sends' for what is none.
inline QueueNumber queue_of(wire::Opcode op) {
  switch (op) {
    case wire::Opcode::read_request:
    case wire::Opcode::atomic_request:
      return kReadRequestQueue;
    case wire::Opcode::terminate:
      return kTerminateQueue;
    case wire::Opcode::atomic_response:
      return kAtomicResponseQueue;
    default:
      return kSendQueue;
  }
}

// An opcode that is unassigned, not negotiated or in the wrong kind of segment is unexpected.
// `extension`: opcodes 8 to 14 were agreed on (spec/mpa 2.7).
inline mpa::Verdict check_opcode(const ddp::Segment& s, bool extension) {
  using wire::Refusal;
  namespace term = wire::term;
  const wire::Opcode op = s.control.opcode;
  if (op > wire::Opcode::delivered) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::unknown_opcode));
  }
  if (wire::needs_extension(op) && !extension) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::opcode_not_negotiated));
  }
  if (wire::is_tagged(op) != s.control.tagged) {
    return fail(term::kOperationUnexpectedOpcode.because(Refusal::opcode_in_wrong_segment));
  }
  if (!s.control.tagged && s.qn != queue_of(op)) {
    return fail(term::kUntaggedInvalidQn.because(Refusal::queue_number));
  }
  return Ok{};
}

}  // namespace weft::rdmap
