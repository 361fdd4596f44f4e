// The scattered memory of one call, as of readv(2), and how many bytes of it the call has moved.
// The memory is the program's, and may not be there.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/bytes.h"

namespace weft::sdp {

class Pieces {
 public:
  explicit Pieces(std::span<const iovec> all) : all_(all) {
    for (const iovec& piece : all) wanted_ += piece.iov_len;
  }
  std::span<const iovec> all() const { return all_; }
  // Bytes of all pieces.
  size_t wanted() const { return wanted_; }
  size_t done() const { return done_; }
  bool all_done() const { return done_ == wanted_; }

  // What is left of the piece that is next. Empty: nothing is left at all.
  MutableBytes rest() {
    while (piece_ < all_.size() && at_ == all_[piece_].iov_len) ++piece_, at_ = 0;
    if (piece_ == all_.size()) return {};
    return {static_cast<std::byte*>(all_[piece_].iov_base) + at_, all_[piece_].iov_len - at_};
  }
  // So many bytes of rest() are done.
  void moved(size_t bytes) {
    at_ += bytes;
    done_ += bytes;
  }

 private:
  std::span<const iovec> all_;
  size_t wanted_ = 0;
  size_t done_ = 0;
  size_t piece_ = 0;
  size_t at_ = 0;  // bytes of that piece
};

}  // namespace weft::sdp
