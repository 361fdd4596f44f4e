// The memory that messages come to. A program that has made its receive buffer small (SO_RCVBUF)
// has fewer of them posted, so that its peer is told of fewer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sdp/rdma/resources.h"

namespace weft::sdp {

class ReceiveBuffers {
 public:
  bool allocate(ibv_pd* pd, uint32_t count, uint32_t size) {
    // The first to be posted is the first.
    for (uint32_t i = count; i-- > 0;) free_.push_back(i);
    return buffers_.allocate(pd, count, size);
  }
  std::byte* at(uint32_t buffer) const { return buffers_.at(buffer); }
  uint32_t key() const { return buffers_.key(); }

  // How many may be posted at once. Those that are posted stay so.
  void limit_posted(uint16_t most) { most_ = most; }
  uint16_t count_posted() const { return posted_; }
  void posted() { ++posted_; }
  // A message has come to one that was posted.
  void used() { --posted_; }
  // `buffer` is free again.
  void give_back(uint32_t buffer) { free_.push_back(buffer); }
  // The next one to post.
  std::optional<uint32_t> take() {
    if (free_.empty() || posted_ >= most_) return std::nullopt;
    const uint32_t buffer = free_.back();
    free_.pop_back();
    return buffer;
  }

 private:
  Buffers buffers_;
  uint16_t posted_ = 0;
  uint16_t most_ = 0;
  std::vector<uint32_t> free_;
};

}  // namespace weft::sdp
