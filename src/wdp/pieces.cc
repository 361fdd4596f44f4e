#include "wdp/pieces.h"

#include <algorithm>

#include "base/guarded.h"

namespace weft::wdp {

bool place(Bytes bytes, const PieceList& places) {
  return place(bytes, {}, places);
}

bool place(Bytes first, Bytes rest, const PieceList& places) {
  for (const IoVec& v : places.pieces()) {
    auto* to = static_cast<std::byte*>(v.iov_base);
    const size_t n = std::min(v.iov_len, first.size());
    const size_t more = v.iov_len - n;
    if (!copy_guarded(to, first.data(), n) || !copy_guarded(to + n, rest.data(), more)) {
      return false;
    }
    first = first.subspan(n);
    rest = rest.subspan(more);
  }
  return true;
}

}  // namespace weft::wdp
