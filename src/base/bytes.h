// Views over bytes, and the one place where byte order is known. The wire is big-endian throughout.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weft {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

template <class T>
constexpr T byte_swap(T v) {
  if constexpr (sizeof(T) == 1) {
    return v;
  } else if constexpr (sizeof(T) == 2) {
    return static_cast<T>(__builtin_bswap16(v));
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(__builtin_bswap32(v));
  } else {
    static_assert(sizeof(T) == 8);
    return static_cast<T>(__builtin_bswap64(v));
  }
}

template <class T>
inline T load_be(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return std::endian::native == std::endian::little ? byte_swap(v) : v;
}
template <class T>
inline void store_be(std::byte* p, T v) {
  if constexpr (std::endian::native == std::endian::little) v = byte_swap(v);
  std::memcpy(p, &v, sizeof v);
}
// CRC fields alone are little-endian (spec/mpa 3.2).
inline uint32_t load_le32(const std::byte* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return std::endian::native == std::endian::little ? v : byte_swap(v);
}
inline void store_le32(std::byte* p, uint32_t v) {
  if constexpr (std::endian::native == std::endian::big) v = byte_swap(v);
  std::memcpy(p, &v, sizeof v);
}

}  // namespace weft
