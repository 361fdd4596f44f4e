// CRC32C as MPA and WDP use it (spec/mpa 3.2): polynomial 0x1EDC6F41 reflected, init and final xor
// all ones.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace weft {

// Computes the CRC of bytes that come in pieces. Any thread; a value type.
class Crc32c {
 public:
  void update(Bytes bytes);
  // The CRC of all bytes so far; more may follow.
  uint32_t value() const { return ~state_; }

 private:
  friend bool copy_with_crc(std::byte* to, Bytes from, Crc32c& crc);
  uint32_t state_ = 0xffffffffU;
};

inline uint32_t crc32c(Bytes bytes) {
  Crc32c c;
  c.update(bytes);
  return c.value();
}

// What computes the CRC of long pieces: "vpclmulqdq", "vpclmulqdq-256", "isa-l", "sse4.2" or
// "table". For `weft doctor` and `weft info`.
const char* crc32c_engine();

// All implementations that this machine has, so that tests reach those that crc32c() does not
// choose. `run` takes and returns the state without the final xor.
struct Crc32cEngine {
  const char* name;
  uint32_t (*run)(uint32_t state, const std::byte* p, size_t n);
};
std::span<const Crc32cEngine> crc32c_engines();

// Copies from memory that may change meanwhile, and computes the CRC of what arrived. False where
// the memory is gone (base/guarded.h); then `crc` means nothing.
[[nodiscard]] bool copy_with_crc(std::byte* to, Bytes from, Crc32c& crc);
// The same where the processor cannot do both in one pass: in blocks that stay in the first-level
// cache.
[[nodiscard]] bool copy_then_crc(std::byte* to, Bytes from, Crc32c& crc);

}  // namespace weft
