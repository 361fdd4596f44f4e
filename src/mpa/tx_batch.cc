#include "mpa/tx_batch.h"

namespace weft::mpa {

TxBatch::TxBatch() : staging_(std::make_unique_for_overwrite<std::byte[]>(kStaging)) {
  pieces_.reserve(kMostPieces);
}

std::byte* TxBatch::stage(size_t n) {
  std::byte* p = staging_.get() + used_;
  used_ += n;
  bytes_ += n;
  if (pieces_.size() > first_) {
    IoVec& last = pieces_.back();
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == p) {
      last.iov_len += n;
      return p;
    }
  }
  pieces_.push_back({p, n});
  return p;
}

void TxBatch::refer(const void* p, size_t n) {
  if (n == 0) return;
  pieces_.push_back({const_cast<void*>(p), n});
  bytes_ += n;
}

void TxBatch::consumed(size_t n) {
  bytes_ -= n;
  if (bytes_ == 0) {
    clear();
    return;
  }
  while (n >= pieces_[first_].iov_len) n -= pieces_[first_++].iov_len;
  pieces_[first_].iov_base = static_cast<std::byte*>(pieces_[first_].iov_base) + n;
  pieces_[first_].iov_len -= n;
}

void TxBatch::clear() {
  pieces_.clear();
  detached_ = {};
  used_ = first_ = bytes_ = 0;
}

void TxBatch::detach() {
  if (bytes_ == 0) return;
  // Done before, and nothing was added since: only a rest of it is left.
  const auto* last = static_cast<const std::byte*>(pieces_.back().iov_base);
  if (pieces_.size() == first_ + 1 && !detached_.empty() && last >= detached_.data() &&
      last < detached_.data() + detached_.size()) {
    return;
  }
  std::vector<std::byte> own;
  own.reserve(bytes_);
  for (const IoVec& v : pieces()) {
    const auto* p = static_cast<const std::byte*>(v.iov_base);
    own.insert(own.end(), p, p + v.iov_len);
  }
  detached_ = std::move(own);
  pieces_.assign(1, {detached_.data(), detached_.size()});
  first_ = 0;
}

TxBatch::Mark TxBatch::mark() const {
  // The next staged byte may extend the last piece, so the mark stands at that piece's end.
  if (pieces_.size() == first_) return {pieces_.size(), 0};
  return {pieces_.size() - 1, pieces_.back().iov_len};
}

}  // namespace weft::mpa
