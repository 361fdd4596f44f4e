#include "wdp/pieces.h"

#include <algorithm>
#include <cstring>

namespace weft::wdp {

void place(Bytes bytes, const PieceList& places) {
  const std::byte* from = bytes.data();
  for (const IoVec& v : places.pieces()) {
    std::memcpy(v.iov_base, from, v.iov_len);
    from += v.iov_len;
  }
}

void place(Bytes first, Bytes rest, const PieceList& places) {
  for (const IoVec& v : places.pieces()) {
    auto* to = static_cast<std::byte*>(v.iov_base);
    const size_t n = std::min(v.iov_len, first.size());
    if (n > 0) std::memcpy(to, first.data(), n);
    first = first.subspan(n);
    const size_t more = v.iov_len - n;
    if (more > 0) std::memcpy(to + n, rest.data(), more);
    rest = rest.subspan(more);
  }
}

}  // namespace weft::wdp
