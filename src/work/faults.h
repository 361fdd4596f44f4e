// Which Terminate answers which memory fault (spec/errors 3).
#pragma once

#include "wire/terminate.h"
#include "work/memory.h"

namespace weft::work {

// A Write's target: tagged buffer errors of DDP (RFC 5041 section 7.2), but rights are RDMAP's (RFC
// 5040 section 7.2).
wire::TermError write_fault(MemoryFault fault);
// The source of a Read, the target of an atomic: protection errors of RDMAP.
wire::TermError read_fault(MemoryFault fault);
// The STag of a Send with Invalidate.
wire::TermError invalidate_fault(MemoryFault fault);

}  // namespace weft::work
