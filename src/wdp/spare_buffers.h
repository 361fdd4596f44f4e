// Bytes of large datagrams that have come serve the next ones: the heap would give their pages back
// to the kernel, and fetch others.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace weft::wdp {

struct DatagramBuffer {
  std::unique_ptr<std::byte[]> bytes;
  uint32_t room = 0;
};

// Of one channel. Not thread-safe.
class SpareBuffers {
 public:
  // One with room for so many bytes. Throws std::bad_alloc.
  DatagramBuffer take(size_t size) {
    if (size >= kFrom && !spares_.empty() && spares_.back().room >= size) {
      DatagramBuffer buffer = std::move(spares_.back());
      spares_.pop_back();
      return buffer;
    }
    // So that put() needs no memory.
    if (size >= kFrom) spares_.reserve(kMost);
    return {std::make_unique_for_overwrite<std::byte[]>(size), static_cast<uint32_t>(size)};
  }
  // Small ones, and those that are too many, go.
  void put(DatagramBuffer buffer) {
    if (buffer.room < kFrom || spares_.size() >= spares_.capacity()) return;
    spares_.push_back(std::move(buffer));
  }
  void clear() { std::vector<DatagramBuffer>{}.swap(spares_); }

 private:
  static constexpr size_t kMost = 64;  // a window of those of 16 KB
  static constexpr size_t kFrom = 4096;

  std::vector<DatagramBuffer> spares_;
};

}  // namespace weft::wdp
