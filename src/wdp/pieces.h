// Bytes of datagrams into their places.
#pragma once

#include "base/bytes.h"
#include "work/pieces.h"

namespace weft::wdp {

// Copies `bytes` into the places, which have room for exactly so many. False where one of them is
// gone (base/guarded.h).
[[nodiscard]] bool place(Bytes bytes, const PieceList& places);
// The same of `first` and what follows it.
[[nodiscard]] bool place(Bytes first, Bytes rest, const PieceList& places);

}  // namespace weft::wdp
