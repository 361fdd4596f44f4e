#include "wdp/train.h"

#include <algorithm>

#include "base/guarded.h"

namespace weft::wdp {

Train::Train() : staging_(std::make_unique_for_overwrite<std::byte[]>(kStaging)) {}

bool Train::takes(size_t size, const Path& path) const {
  if (empty()) return size <= wire::kMaxUdpPayload;
  const size_t most = std::min(most_, path_.to.address.is_ipv4() ? kMostBytes : kMostBytesIpv6);
  return !closed_ && datagrams_ < kMostDatagrams && size <= segment_ && bytes_ + size <= most &&
         path == path_;
}

void Train::begin(size_t size, const Path& path) {
  if (empty()) {
    segment_ = size;
    path_ = path;
  } else if (size < segment_) {
    closed_ = true;  // only the last one may be shorter
  }
  ++datagrams_;
  bytes_ += size;
}

std::byte* Train::stage(size_t n) {
  std::byte* p = staging_.get() + used_;
  used_ += n;
  if (!pieces_.empty()) {
    IoVec& last = pieces_.back();
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == p) {
      last.iov_len += n;
      return p;
    }
  }
  pieces_.push_back({p, n});
  return p;
}

void Train::unstage(size_t n) {
  used_ -= n;
  pieces_.back().iov_len -= n;
  if (pieces_.back().iov_len == 0) pieces_.pop_back();
}

void Train::refer(const void* p, size_t n) {
  if (n > 0) pieces_.push_back({const_cast<void*>(p), n});
}

void Train::clear() {
  pieces_.clear();
  detached_ = {};
  used_ = datagrams_ = segment_ = bytes_ = 0;
  most_ = SIZE_MAX;
  closed_ = lost_ = fragments_ = false;
}

bool Train::detach() {
  if (empty() || lost_ || !detached_.empty()) return !lost_;
  size_t there = 0;
  for (const IoVec& v : pieces_) {
    if (!readable_guarded(v.iov_base, v.iov_len)) break;
    there += v.iov_len;
  }
  std::vector<std::byte> own(there);
  size_t copied = 0;
  for (const IoVec& v : pieces_) {
    const size_t n = std::min(v.iov_len, own.size() - copied);
    if (!copy_guarded(own.data() + copied, v.iov_base, n)) break;
    copied += n;
  }
  end_at(copied);
  detached_ = std::move(own);
  pieces_.assign(1, {detached_.data(), bytes_});
  closed_ = true;
  return !lost_;
}

// With the last datagram that is there as a whole.
void Train::end_at(size_t bytes) {
  if (bytes >= bytes_) return;
  lost_ = true;
  datagrams_ = bytes / segment_;
  bytes_ = datagrams_ * segment_;
}

}  // namespace weft::wdp
