// A walk over a program's pieces of memory, which outlive it. Value type.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace weft::rsockets {

class IovCursor {
 public:
  IovCursor(const iovec* pieces, size_t count) : at_(pieces), end_(pieces + count) {
    for (const iovec* p = at_; p != end_; ++p) left_ += p->iov_len;
  }

  size_t left() const { return left_; }
  // The next `n` bytes, of left(): to `p`, or from there.
  void copy_to(std::byte* p, size_t n) {
    walk(n, [&p](std::byte* piece, size_t part) {
      std::memcpy(p, piece, part);
      p += part;
    });
  }
  void copy_from(const std::byte* p, size_t n) {
    walk(n, [&p](std::byte* piece, size_t part) {
      std::memcpy(piece, p, part);
      p += part;
    });
  }

 private:
  template <class Copy>
  void walk(size_t n, Copy copy) {
    left_ -= n;
    while (n > 0) {
      const size_t part = std::min(n, at_->iov_len - done_);
      if (part > 0) copy(static_cast<std::byte*>(at_->iov_base) + done_, part);
      n -= part;
      done_ += part;
      if (done_ == at_->iov_len) {
        ++at_;
        done_ = 0;
      }
    }
  }

  const iovec* at_;
  const iovec* end_;
  size_t done_ = 0;  // of the piece at_
  size_t left_ = 0;
};

}  // namespace weft::rsockets
