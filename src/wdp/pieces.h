// From places in messages to places in memory, and bytes into them.
#pragma once

#include "base/bytes.h"
#include "base/io_vec.h"
#include "rdmap/memory.h"
#include "rdmap/work_request.h"

namespace weft::wdp {

// Where bytes [offset, offset + length) of the request's payload live.
Result<Ok, rdmap::MemoryFault> local_pieces(rdmap::Memory& memory, const rdmap::SendWqe& wqe,
                                            uint32_t offset, uint32_t length, rdmap::Access need,
                                            PieceList& out);

// Where bytes [offset, offset + length) of a message go that takes this receive.
Result<Ok, rdmap::MemoryFault> receive_pieces(rdmap::Memory& memory, const rdmap::Receive& receive,
                                              uint64_t offset, size_t length, PieceList& out);

// Copies `bytes` into the places, which have room for exactly so many.
void place(Bytes bytes, const PieceList& places);

}  // namespace weft::wdp
