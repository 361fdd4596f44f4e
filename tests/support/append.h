// What was given in pieces, as one.
#pragma once

#include <span>
#include <vector>

#include "base/io_vec.h"

namespace weft::test {

inline void append(std::vector<std::byte>& to, std::span<const IoVec> pieces) {
  for (const IoVec& v : pieces) {
    const auto* const p = static_cast<const std::byte*>(v.iov_base);
    to.insert(to.end(), p, p + v.iov_len);
  }
}

inline std::vector<std::byte> joined(std::span<const IoVec> pieces) {
  std::vector<std::byte> all;
  append(all, pieces);
  return all;
}

}  // namespace weft::test
