// The part of an FPDU that has come, in memory that nobody else writes to.
#pragma once

#include <algorithm>
#include <memory>

#include "base/bytes.h"

namespace weft::mpa {

// Not thread-safe. Its memory is not cleared first, for an FPDU has up to 64 KiB, and is kept for
// the next one until trim().
class PartialFpdu {
 public:
  bool empty() const { return have_ == 0; }
  size_t size() const { return have_; }
  Bytes bytes() const { return {memory_.get(), have_}; }

  void append(Bytes bytes) {
    reserve(have_ + bytes.size());
    if (!bytes.empty()) std::memcpy(memory_.get() + have_, bytes.data(), bytes.size());
    have_ += bytes.size();
  }
  // It will have so many bytes: there is room for the rest of them.
  void reserve(size_t size) {
    if (size <= room_) return;
    auto larger = std::make_unique_for_overwrite<std::byte[]>(size);
    if (have_ > 0) std::memcpy(larger.get(), memory_.get(), have_);
    memory_ = std::move(larger);
    room_ = size;
  }
  // Where the bytes up to `size` go, for whom reserve() was called; and `n` of them are there.
  MutableBytes rest(size_t size) { return {memory_.get() + have_, size - have_}; }
  void filled(size_t n) { have_ += n; }

  void clear() { have_ = 0; }
  void trim() {
    if (have_ > 0) return;
    memory_.reset();
    room_ = 0;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t room_ = 0;
  size_t have_ = 0;
};

}  // namespace weft::mpa
