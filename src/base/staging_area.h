// Memory from which the kernel copies what is sent, or to which it copies what comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft {

// Begins in the middle of a page. The kernel keeps the bytes in pages of its own, which it mostly
// begins with a call, or continues a few headers behind the beginning. An area that begins with a
// page, or a little behind, meets slow copies again and again (base/slow_copy.h).
class StagingArea {
 public:
  // Throws std::bad_alloc. What is in it is not cleared.
  explicit StagingArea(size_t bytes)
      : memory_(std::make_unique_for_overwrite<std::byte[]>(bytes + kPage)),
        data_(memory_.get() +
              (kPage + kBegin - reinterpret_cast<uintptr_t>(memory_.get()) % kPage) % kPage) {}
  std::byte* data() const { return data_; }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kBegin = kPage / 2;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_;
};

}  // namespace weft
