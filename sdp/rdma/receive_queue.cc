#include "sdp/rdma/receive_queue.h"

#include <algorithm>

namespace weft::sdp {

size_t ReceiveQueue::peek(MutableBytes to, size_t skipped) const {
  size_t copied = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const size_t passed = std::min(skipped, piece.bytes.size());
    skipped -= passed;
    const Bytes bytes = piece.bytes.subspan(passed);
    const size_t n = std::min(bytes.size(), to.size() - copied);
    std::copy_n(bytes.begin(), n, to.begin() + static_cast<std::ptrdiff_t>(copied));
    copied += n;
  }
  return copied;
}

std::optional<uint32_t> ReceiveQueue::take(size_t bytes) {
  Piece& piece = pieces_.front();
  piece.bytes = piece.bytes.subspan(bytes);
  bytes_ -= bytes;
  if (!piece.bytes.empty()) return std::nullopt;
  const uint32_t buffer = piece.buffer;
  pieces_.pop_front();
  return buffer;
}

}  // namespace weft::sdp
