// Bytes of datagrams into their places.
#pragma once

#include "base/bytes.h"
#include "work/pieces.h"
#include "work/send_queue.h"

namespace weft::wdp {

// Copies `bytes` into the places, which have room for exactly so many. False where one of them is
// gone (base/guarded.h).
[[nodiscard]] bool place(Bytes bytes, const PieceList& places);
// The same of `first` and what follows it.
[[nodiscard]] bool place(Bytes first, Bytes rest, const PieceList& places);

// Of the requests from `first` to `end` that send bytes: the first one whose bytes are not all
// there; where they are, the first one. `end` where there is none.
uint64_t first_without_memory(work::Memory& memory, work::SendQueue& queue, uint64_t first,
                              uint64_t end);

}  // namespace weft::wdp
