#include "sdp/rdma/send_buffers.h"

#include <numeric>

#include "sdp/wire/bsdh.h"

namespace weft::sdp {

MutableBytes SendBuffers::room() {
  const auto used = posted_ + static_cast<uint32_t>(waiting_.size());
  if (!waiting_.empty() && waiting_.back() < payload_) {
    const uint32_t last = (first_ + used - 1) % buffers_.count();
    return {buffers_.at(last) + Bsdh::kSize + waiting_.back(), payload_ - waiting_.back()};
  }
  if (used == buffers_.count()) return {};
  return {buffers_.at((first_ + used) % buffers_.count()) + Bsdh::kSize, payload_};
}

void SendBuffers::filled(uint32_t bytes) {
  if (!waiting_.empty() && waiting_.back() < payload_) {
    waiting_.back() += bytes;
  } else {
    waiting_.push_back(bytes);
  }
}

void SendBuffers::posted() {
  waiting_.pop_front();
  ++posted_;
}

void SendBuffers::completed() {
  first_ = (first_ + 1) % buffers_.count();
  --posted_;
}

uint32_t SendBuffers::waiting_bytes() const {
  return std::accumulate(waiting_.begin(), waiting_.end(), uint32_t{0});
}

}  // namespace weft::sdp
