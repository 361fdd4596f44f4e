// Bytes that have come and nobody has read yet, in the buffers that they came in.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "sdp/rdma/ring.h"

namespace weft::sdp {

class ReceiveQueue {
 public:
  // Pieces at a time: one in each receive buffer, and what is staged.
  static constexpr size_t kMost = 33;

  // The payload of a message in receive buffer `buffer`.
  void push(Bytes payload, uint32_t buffer) {
    pieces_.push_back({payload, buffer}), bytes_ += payload.size(), pushed_ += payload.size();
  }
  bool empty() const { return bytes_ == 0; }
  size_t bytes() const { return bytes_; }
  // All that ever came.
  uint64_t pushed() const { return pushed_; }

  // The next bytes that lie together; only when not empty.
  Bytes front() const { return pieces_.front().bytes; }
  // Copies without taking, behind the first `skipped`; returns how many.
  size_t peek(MutableBytes to, size_t skipped = 0) const;
  // Takes `bytes` of front(); the buffer that is free by that, if there is one.
  std::optional<uint32_t> take(size_t bytes);

 private:
  struct Piece {
    Bytes bytes;
    uint32_t buffer = 0;
  };
  Ring<Piece, kMost> pieces_;
  size_t bytes_ = 0;
  uint64_t pushed_ = 0;
};

}  // namespace weft::sdp
