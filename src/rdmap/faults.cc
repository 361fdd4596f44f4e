#include "rdmap/faults.h"

namespace weft::rdmap {

namespace term = wire::term;

wire::TermError write_fault(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::bounds:
      return term::kTaggedBounds;
    case MemoryFault::access:
      return term::kProtectionAccess;
    case MemoryFault::not_on_stream:
      return term::kTaggedNotOnStream;
    case MemoryFault::wraps:
      return term::kTaggedToWrap;
    case MemoryFault::invalid_stag:
    case MemoryFault::cannot_invalidate:
      break;
  }
  return term::kTaggedInvalidStag;
}

wire::TermError read_fault(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::bounds:
      return term::kProtectionBounds;
    case MemoryFault::access:
      return term::kProtectionAccess;
    case MemoryFault::not_on_stream:
      return term::kProtectionNotOnStream;
    case MemoryFault::wraps:
      return term::kProtectionToWrap;
    case MemoryFault::invalid_stag:
    case MemoryFault::cannot_invalidate:
      break;
  }
  return term::kProtectionInvalidStag;
}

wire::TermError invalidate_fault(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::access:
    case MemoryFault::not_on_stream:
      return term::kProtectionCannotInvalidate;
    default:
      return term::kOperationCannotInvalidate;
  }
}

}  // namespace weft::rdmap
