// What both implementations of folding share, on x86-64: the factors by which bits are moved on
// (crc32c_fold.cc says why), and the bytes that are too few to be folded, or all where nothing
// folds.
#pragma once

#include <nmmintrin.h>

#include <cstddef>
#include <cstdint>

namespace weft::crc {

// v times x, modulo P, in CRC32C's order of bits.
constexpr uint32_t times_x(uint32_t v) {
  return (v & 1) != 0 ? 0x82F63B78U ^ (v >> 1) : v >> 1;
}

// x^n modulo P, one place up: a product of two such numbers is one place down.
constexpr uint64_t power(unsigned n) {
  uint32_t v = 0x80000000U;
  for (; n > 0; --n) v = times_x(v);
  return uint64_t{v} << 1;
}

// For both halves of 128 bits: by how many bits are they moved on?
struct alignas(16) Factors {
  uint64_t low;
  uint64_t high;
};
constexpr Factors factors(unsigned bits) {
  return {power(bits + 32), power(bits - 32)};
}

// By the CRC instruction.
__attribute__((target("sse4.2"))) inline uint32_t rest(uint32_t state, const std::byte* p,
                                                       size_t n) {
  uint64_t s = state;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t v;
    __builtin_memcpy(&v, p, sizeof v);
    s = _mm_crc32_u64(s, v);
  }
  auto t = static_cast<uint32_t>(s);
  for (; n > 0; ++p, --n) t = _mm_crc32_u8(t, static_cast<unsigned char>(*p));
  return t;
}

}  // namespace weft::crc
