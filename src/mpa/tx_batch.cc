#include "mpa/tx_batch.h"

#include <algorithm>

#include "base/guarded.h"

namespace weft::mpa {

TxBatch::TxBatch() : staging_(kStaging) {
  pieces_.reserve(kMostPieces);
}

void TxBatch::add_piece(void* p, size_t n) {
  pieces_.push_back({p, n});
}

void TxBatch::unstage(size_t n) {
  used_ -= n;
  bytes_ -= n;
  pieces_.back().iov_len -= n;
  if (pieces_.back().iov_len == 0) pieces_.pop_back();
}

void TxBatch::refer(const void* p, size_t n) {
  if (n == 0) return;
  refers_ = true;
  add_piece(const_cast<void*>(p), n);
  bytes_ += n;
}

void TxBatch::consumed(size_t n) {
  bytes_ -= n;
  if (bytes_ == 0) {
    const void* const lost = lost_;
    clear();
    lost_ = lost;
    return;
  }
  while (n >= pieces_[first_].iov_len) n -= pieces_[first_++].iov_len;
  pieces_[first_].iov_base = static_cast<std::byte*>(pieces_[first_].iov_base) + n;
  pieces_[first_].iov_len -= n;
}

void TxBatch::clear() {
  pieces_.clear();
  detached_ = {};
  lost_ = nullptr;
  refers_ = false;
  used_ = first_ = bytes_ = 0;
}

bool TxBatch::detach() {
  if (!refers_) return false;
  const void* lost = nullptr;
  size_t there = 0;
  for (const IoVec& v : pieces()) {
    if (!readable_guarded(v.iov_base, v.iov_len)) {
      lost = v.iov_base;
      break;
    }
    there += v.iov_len;
  }
  std::vector<std::byte> own(there);
  size_t have = 0;
  for (const IoVec& v : pieces()) {
    if (have == there) break;
    if (!copy_guarded(own.data() + have, v.iov_base, v.iov_len)) {
      lost = v.iov_base;
      break;
    }
    have += v.iov_len;
  }
  if (lost != nullptr) lost_ = lost;
  own.resize(have);
  detached_ = std::move(own);
  bytes_ = have;
  refers_ = false;
  first_ = 0;
  pieces_.clear();
  if (have > 0) pieces_.push_back({detached_.data(), have});
  return true;
}

}  // namespace weft::mpa
