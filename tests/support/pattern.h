// Bytes to send and to compare.
#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"

namespace weft::test {

using Buffer = std::vector<std::byte>;

// Bytes that differ from one to the next, and from one `salt` to another.
template <class Byte = std::byte>
std::vector<Byte> pattern_bytes(size_t n, uint64_t salt) {
  SeededRandom random{salt * 2654435761U + 1};
  std::vector<Byte> b(n);
  for (Byte& x : b) x = static_cast<Byte>(random.next() >> 13);
  return b;
}

}  // namespace weft::test
