// CRC32C by folding with VPCLMULQDQ, and in the same pass as a copy (docs/design/01). On registers
// of 512 bits four times as fast as the CRC instruction, and faster than ISA-L below some KB. On
// those of 256 bits, while the CRC instruction, which is another unit's, sums a part: one and a
// half times as fast as ISA-L.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::fold {

// From so many bytes on it pays; fewer must not be given.
inline constexpr size_t kLeast = 256;

struct Implementation {
  const char* name;
  // Takes and returns the state without the final xor.
  uint32_t (*crc)(uint32_t state, const std::byte* p, size_t n);
  // Copies from memory that may change or be gone, and sums what arrived. False where it is gone
  // (base/guarded.h); then `state` means nothing.
  bool (*copy)(uint32_t& state, std::byte* to, const std::byte* from, size_t n);
};

// Null where this processor, or its system, lacks what it needs.
#if defined(__x86_64__)
const Implementation* by_512_bits();
const Implementation* by_256_bits();
#else
inline const Implementation* by_512_bits() {
  return nullptr;
}
inline const Implementation* by_256_bits() {
  return nullptr;
}
#endif

}  // namespace weft::fold
