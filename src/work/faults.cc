#include "work/faults.h"

namespace weft::work {

namespace term = wire::term;
using wire::Refusal;

wire::TermError write_fault(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::bounds:
      return term::kTaggedBounds.because(Refusal::write_bounds);
    case MemoryFault::access:
      return term::kProtectionAccess.because(Refusal::write_access);
    case MemoryFault::not_on_stream:
      return term::kTaggedNotOnStream.because(Refusal::write_not_on_stream);
    case MemoryFault::wraps:
      return term::kTaggedToWrap.because(Refusal::write_wrap);
    // Nothing in RFC 5041 section 7.2 is nearer: what is named ends before these bytes.
    case MemoryFault::gone:
      return term::kTaggedBounds.because(Refusal::write_gone);
    case MemoryFault::invalid_stag:
    case MemoryFault::cannot_invalidate:
      break;
  }
  return term::kTaggedInvalidStag.because(Refusal::write_invalid_stag);
}

wire::TermError read_fault(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::bounds:
      return term::kProtectionBounds.because(Refusal::read_bounds);
    case MemoryFault::access:
      return term::kProtectionAccess.because(Refusal::read_access);
    case MemoryFault::not_on_stream:
      return term::kProtectionNotOnStream.because(Refusal::read_not_on_stream);
    case MemoryFault::wraps:
      return term::kProtectionToWrap.because(Refusal::read_wrap);
    case MemoryFault::gone:
      return term::kProtectionBounds.because(Refusal::read_gone);
    case MemoryFault::invalid_stag:
    case MemoryFault::cannot_invalidate:
      break;
  }
  return term::kProtectionInvalidStag.because(Refusal::read_invalid_stag);
}

wire::TermError invalidate_fault(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::access:
    case MemoryFault::not_on_stream:
      return term::kProtectionCannotInvalidate.because(Refusal::invalidate_not_allowed);
    default:
      return term::kOperationCannotInvalidate.because(Refusal::invalidate_impossible);
  }
}

}  // namespace weft::work
