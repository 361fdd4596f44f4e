// Scattered memory, in the shape that the kernel takes without conversion.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>

namespace weft {

using IoVec = ::iovec;

inline size_t total(std::span<const IoVec> pieces) {
  size_t n = 0;
  for (const IoVec& v : pieces) n += v.iov_len;
  return n;
}

// Pieces of memory that one segment's payload is placed in or taken from: at most one per SGE
// (spec/abi 2.6).
class PieceList {
 public:
  static constexpr size_t kMost = 32;
  void clear() { size_ = bytes_ = 0; }
  // Empty pieces leave no trace. False when the list is full.
  bool add(void* p, size_t n) {
    if (n == 0) return true;
    if (size_ == kMost) return false;
    pieces_[size_++] = {p, n};
    bytes_ += n;
    return true;
  }
  std::span<const IoVec> pieces() const { return {pieces_.data(), size_}; }
  size_t bytes() const { return bytes_; }

 private:
  std::array<IoVec, kMost> pieces_;
  size_t size_ = 0;
  size_t bytes_ = 0;
};

}  // namespace weft
