// What all fuzz targets need: their entry point, checks that do not go away in release builds, and
// exact buffers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/bytes.h"

// libFuzzer's interface. Returns 0; aborts when a check fails.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace weft::fuzz {

inline Bytes as_bytes(const uint8_t* data, size_t size) {
  return std::as_bytes(std::span{data, size});
}

// The first `n` bytes in memory of their own: ASan sees the first byte that is read beyond them.
inline std::vector<std::byte> exact(Bytes bytes, size_t n) {
  return {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n)};
}

inline bool same(Bytes a, Bytes b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// parse, encode, parse, encode of a message with a fixed size: returns the first encoding, checked
// against the second.
template <class Message>
std::vector<std::byte> fixpoint(const Message& parsed) {
  std::vector<std::byte> once(Message::kSize);
  std::vector<std::byte> twice(Message::kSize);
  parsed.encode(once.data());
  Message::parse(once.data()).encode(twice.data());
  FUZZ_CHECK(same(once, twice));
  return once;
}

}  // namespace weft::fuzz
