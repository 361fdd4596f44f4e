// From places in a message to places in the program's memory.
#pragma once

#include "base/io_vec.h"
#include "work/memory.h"
#include "work/work_request.h"

namespace weft::work {

// Where bytes [offset, offset + length) of the request's payload live. Engine holder.
Result<Ok, MemoryFault> local_pieces(Memory& memory, const SendWqe& wqe, uint32_t offset,
                                     uint32_t length, Access need, PieceList& out);

// Where bytes [offset, offset + length) of a message go that takes this receive. Engine holder.
Result<Ok, MemoryFault> receive_pieces(Memory& memory, const Receive& receive, uint64_t offset,
                                       size_t length, PieceList& out);

}  // namespace weft::work
