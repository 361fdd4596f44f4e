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
  if (empty() || !detached_.empty()) return !lost_;
  for (const IoVec& v : pieces_) lost_ = lost_ || !readable_guarded(v.iov_base, v.iov_len);
  std::vector<std::byte> own(bytes_);
  std::byte* to = own.data();
  for (const IoVec& v : pieces_) {
    lost_ = lost_ || !copy_guarded(to, v.iov_base, v.iov_len);
    if (lost_) break;
    to += v.iov_len;
  }
  detached_ = std::move(own);
  pieces_.assign(1, {detached_.data(), detached_.size()});
  closed_ = true;
  return !lost_;
}

}  // namespace weft::wdp
