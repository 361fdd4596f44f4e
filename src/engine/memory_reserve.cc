#include "engine/memory_reserve.h"

#include <algorithm>

#include "base/log.h"

namespace weft::engine {

void MemoryReserve::spend() {
  spent_.add();
  whole_ = false;
  const auto piece = std::find_if(pieces_.begin(), pieces_.end(), [](auto& p) { return bool{p}; });
  if (piece != pieces_.end()) piece->reset();
}

void MemoryReserve::renew() {
  whole_ = true;
  for (auto& piece : pieces_) {
    if (!piece) piece.reset(new (std::nothrow) std::byte[kPiece]);
    whole_ &= bool{piece};
  }
}

void MemoryReserve::report_failure() {
  WEFT_LOG(error,
           "no memory even to end a connection; it is tried again. Remedy: raise the limits of "
           "address space and memory of this process");
}

}  // namespace weft::engine
