// Which segments of a message have come: a bit for each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::wdp {

class SegmentMap {
 public:
  // Forgets all; there are `n` of them from now on.
  void reset(uint32_t n) {
    size_ = missing_ = n;
    words_.assign((size_t{n} + 63) / 64, 0);
  }
  // Gives its memory back.
  void release() {
    size_ = missing_ = 0;
    words_ = {};
  }

  uint32_t size() const { return size_; }
  uint32_t missing() const { return missing_; }
  bool full() const { return missing_ == 0; }
  bool test(uint32_t i) const { return (words_[i / 64] >> i % 64 & 1) != 0; }
  // False when it was there.
  bool set(uint32_t i) {
    uint64_t& w = words_[i / 64];
    const uint64_t bit = uint64_t{1} << i % 64;
    if ((w & bit) != 0) return false;
    w |= bit;
    --missing_;
    return true;
  }

  // The first that is missing, or is there, in [from, end); `end` when there is none.
  uint32_t next_missing(uint32_t from, uint32_t end) const { return next(from, end, ~uint64_t{0}); }
  uint32_t next_present(uint32_t from, uint32_t end) const { return next(from, end, 0); }

 private:
  uint32_t next(uint32_t from, uint32_t end, uint64_t flip) const {
    while (from < end) {
      const uint64_t w = (words_[from / 64] ^ flip) >> from % 64;
      if (w != 0) {
        const uint32_t found = from + static_cast<uint32_t>(std::countr_zero(w));
        return found < end ? found : end;
      }
      from = (from / 64 + 1) * 64;
    }
    return end;
  }

  uint32_t size_ = 0;
  uint32_t missing_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace weft::wdp
