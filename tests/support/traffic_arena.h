// Memory for Traffic (traffic.h): every byte that a request may touch has a place of its own.
#pragma once

#include <algorithm>
#include <cstring>

#include "tests/support/host.h"

namespace weft::test {

inline constexpr size_t kGuard = 48;  // bytes between places that nobody may touch

// A registered piece of memory in which requests get places, and what it must look like at the end.
class Arena {
 public:
  explicit Arena(uint64_t salt) : salt_(salt) {}
  // Places are handed out before anything is posted.
  size_t place(size_t n, size_t align = 1) {
    size_ = (size_ + kGuard + align - 1) / align * align;
    const size_t at = size_;
    size_ += n;
    return at;
  }
  void make(Host& host, uint8_t rights) {
    memory = pattern_bytes(size_ + kGuard + 8, salt_);
    // Atomics need their places aligned in the address, too.
    base = (8 - reinterpret_cast<uintptr_t>(memory.data()) % 8) % 8;
    before = final = memory;
    stag = host.add_region(memory, rights);
  }
  std::byte* at(size_t place) { return memory.data() + base + place; }
  uint64_t address(size_t place) const {
    return reinterpret_cast<uintptr_t>(memory.data()) + base + place;
  }
  Bytes initially(size_t place, size_t n) const { return Bytes{before}.subspan(base + place, n); }
  Bytes now(size_t place, size_t n) const { return Bytes{memory}.subspan(base + place, n); }
  Bytes finally(size_t place, size_t n) const { return Bytes{final}.subspan(base + place, n); }
  void expect(size_t place, Bytes bytes) {
    std::copy(bytes.begin(), bytes.end(), final.begin() + static_cast<ptrdiff_t>(base + place));
  }
  bool as_expected() const { return memory == final; }
  // Every byte is the one from before or the one that was to come. `zeros`: or nothing, as in the
  // receive of a message that came early and was not finished.
  bool nothing_foreign(bool zeros = false) const {
    for (size_t i = 0; i < memory.size(); ++i) {
      if (memory[i] == before[i] || memory[i] == final[i]) continue;
      if (!zeros || memory[i] != std::byte{0}) return false;
    }
    return true;
  }

  Buffer memory;
  Buffer before;
  Buffer final;
  size_t base = 0;
  Stag stag;

 private:
  const uint64_t salt_;
  size_t size_ = 0;
};

}  // namespace weft::test
