#include "wdp/pieces.h"

#include <cstring>

namespace weft::wdp {

void place(Bytes bytes, const PieceList& places) {
  const std::byte* from = bytes.data();
  for (const IoVec& v : places.pieces()) {
    std::memcpy(v.iov_base, from, v.iov_len);
    from += v.iov_len;
  }
}

}  // namespace weft::wdp
