// What goes to the kernel in one system call: headers and small payloads in a staging area, large
// payloads by reference. Many FPDUs share a batch, for a send call costs more than the FPDU
// (design/16).
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/io_vec.h"
#include "base/staging_area.h"

namespace weft::mpa {

// Owned by one stream at a time while it has bytes in it; otherwise in the drivers' pool. Not
// thread-safe. Memory that is referred to must stay as it is until the batch is empty again.
class TxBatch {
 public:
  static constexpr size_t kStaging = 256 * 1024;
  static constexpr size_t kMostPieces = 1000;  // IOV_MAX is 1024
  // Half of this costs a large transfer a sixth of its rate: more calls, and more of them cut by
  // a full socket (docs/performance-notes.md).
  static constexpr size_t kMostBytes = 1024 * 1024;

  TxBatch();

  bool empty() const { return bytes_ == 0; }
  size_t bytes() const { return bytes_; }
  // Of the bytes since it was empty, those in staging.
  size_t staged() const { return used_; }
  // Has memory that is not its own been referred to since it was empty, or detached?
  bool refers() const { return refers_; }
  std::span<const IoVec> pieces() const { return std::span{pieces_}.subspan(first_); }
  // Memory of the batch's own. As it was filled, or detached, pieces() outside of it are referred
  // to; nothing is staged behind detach().
  Bytes own() const {
    return detached_.empty() ? Bytes{staging_.data(), kStaging} : Bytes{detached_};
  }

  // Room for an FPDU with `staged` bytes in staging, `pieces` references and `bytes` in all?
  bool has_room(size_t staged, size_t pieces, size_t bytes) const {
    return used_ + staged <= kStaging && pieces_.size() + pieces * 2 + 1 <= kMostPieces &&
           (bytes_ == 0 || bytes_ + bytes <= kMostBytes);
  }
  // `n` more bytes of staging, part of the batch from now on; has_room() said yes.
  std::byte* stage(size_t n) {
    std::byte* const p = staging_.data() + used_;
    used_ += n;
    bytes_ += n;
    if (first_ < pieces_.size() && end_of(pieces_.back()) == p) [[likely]] {
      pieces_.back().iov_len += n;
    } else {
      add_piece(p, n);
    }
    return p;
  }
  // Takes back the last `n` bytes, which stage() gave out.
  void unstage(size_t n);
  void refer(const void* p, size_t n);

  // The kernel took the first `n` bytes. When it took all, the batch is empty and clean, but for
  // lost().
  void consumed(size_t n);
  void clear();
  // Copies what it still refers to, so that the memory's owner may have it back. A batch that waits
  // for the socket does this when a region is deregistered, a window closed or a work request
  // flushed. Where memory is gone already, the batch ends before it: see lost(). False: all was its
  // own already.
  bool detach();
  // Memory that could not be reached; null where there was none. The bytes before it are the last
  // that can be sent.
  const void* lost() const { return lost_; }

 private:
  static std::byte* end_of(const IoVec& v) {
    return static_cast<std::byte*>(v.iov_base) + v.iov_len;
  }
  // Seldom: a call of its own keeps stage() small.
  [[gnu::noinline]] void add_piece(void* p, size_t n);

  StagingArea staging_;
  size_t used_ = 0;
  std::vector<IoVec> pieces_;
  std::vector<std::byte> detached_;
  const void* lost_ = nullptr;
  bool refers_ = false;
  size_t first_ = 0;  // pieces before it are with the kernel
  size_t bytes_ = 0;
};

}  // namespace weft::mpa
