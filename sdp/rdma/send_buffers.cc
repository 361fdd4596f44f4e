#include "sdp/rdma/send_buffers.h"

#include <algorithm>

#include "sdp/wire/bsdh.h"

namespace weft::sdp {

MutableBytes SendBuffers::room() {
  if (bytes_ >= most_) return {};
  const uint32_t most = most_ - bytes_;
  const auto used = static_cast<uint32_t>(posted_.size() + waiting_.size());
  if (last_has_room()) {
    const uint32_t last = (first_ + used - 1) % buffers_.count();
    const uint32_t payload = waiting_.back().payload;
    return {buffers_.at(last) + Bsdh::kSize + payload, std::min(payload_ - payload, most)};
  }
  if (used == buffers_.count()) return {};
  return {buffers_.at((first_ + used) % buffers_.count()) + Bsdh::kSize, std::min(payload_, most)};
}

void SendBuffers::filled(uint32_t bytes) {
  bytes_ += bytes;
  if (last_has_room()) {
    waiting_.back().payload += bytes;
  } else {
    waiting_.push_back({bytes, false});
  }
}

void SendBuffers::posted() {
  posted_.push_back(waiting_.front().payload);
  waiting_.pop_front();
}

void SendBuffers::completed() {
  first_ = (first_ + 1) % buffers_.count();
  bytes_ -= posted_.front();
  posted_.pop_front();
}

uint32_t SendBuffers::waiting_bytes() const {
  uint32_t bytes = 0;
  for (size_t i = 0; i < waiting_.size(); ++i) bytes += waiting_[i].payload;
  return bytes;
}

}  // namespace weft::sdp
