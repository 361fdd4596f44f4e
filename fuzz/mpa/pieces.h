// Bytes of a peer in pieces of the sizes that an input names: each piece in memory of its own, so
// that ASan sees a read beyond it.
#pragma once

#include "fuzz/support/input.h"

namespace weft::fuzz {

// take(Bytes& piece) -> bool: false ends it; what it leaves of a piece is returned with the rest,
// for nobody may read past his frame. The first byte of `sizes` is the first size, 0 means all.
template <class Take>
std::vector<std::byte> in_pieces(Bytes stream, Bytes sizes, Take&& take) {
  Input size{sizes};
  size_t done = 0;
  while (done < stream.size()) {
    const size_t n = size.u8();
    const auto piece = exact(stream.subspan(done),
                             n == 0 ? stream.size() - done : std::min(n, stream.size() - done));
    Bytes left{piece};
    const bool more = take(left);
    FUZZ_CHECK(left.size() <= piece.size());
    FUZZ_CHECK(same(left, Bytes{piece}.last(left.size())));
    done += piece.size() - left.size();
    if (!more) break;
    FUZZ_CHECK(left.empty());
  }
  const Bytes rest = stream.subspan(done);
  return {rest.begin(), rest.end()};
}

}  // namespace weft::fuzz
