// CRC32C where the processor has VPCLMULQDQ on registers of 256 bits and not on larger ones: most
// of a piece is folded, and at the same time the CRC instruction, which is another unit's, sums the
// rest. One and a half times as fast as ISA-L, and in the same pass as a copy (docs/design/01).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::mix {

// Does this processor, with its system, have what the other two need? They are called only then.
bool supported();

// From so many bytes on it pays; fewer must not be given.
inline constexpr size_t kLeast = 256;

// Takes and returns the state without the final xor.
uint32_t crc(uint32_t state, const std::byte* p, size_t n);

// Copies from memory that may change or be gone, and sums what arrived. False where it is gone
// (base/guarded.h); then `state` means nothing.
[[nodiscard]] bool copy(uint32_t& state, std::byte* to, const std::byte* from, size_t n);

}  // namespace weft::mix
