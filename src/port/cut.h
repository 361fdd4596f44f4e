// Cutting a list of pieces into datagrams.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/io_vec.h"

namespace weft::port {

// Appends pieces that make up bytes [offset, offset + n) of `pieces`.
inline void cut(std::span<const IoVec> pieces, size_t offset, size_t n, std::vector<IoVec>& out) {
  for (const IoVec& v : pieces) {
    if (n == 0) return;
    if (offset >= v.iov_len) {
      offset -= v.iov_len;
      continue;
    }
    const size_t now = std::min(n, v.iov_len - offset);
    out.push_back({static_cast<std::byte*>(v.iov_base) + offset, now});
    offset = 0;
    n -= now;
  }
}

}  // namespace weft::port
