#include "sdp/rdma/send_buffers.h"

#include <numeric>

#include "sdp/wire/bsdh.h"

namespace weft::sdp {

MutableBytes SendBuffers::room() {
  const auto used = posted_ + static_cast<uint32_t>(waiting_.size());
  if (last_has_room()) {
    const uint32_t last = (first_ + used - 1) % buffers_.count();
    const uint32_t payload = waiting_.back().payload;
    return {buffers_.at(last) + Bsdh::kSize + payload, payload_ - payload};
  }
  if (used == buffers_.count()) return {};
  return {buffers_.at((first_ + used) % buffers_.count()) + Bsdh::kSize, payload_};
}

void SendBuffers::filled(uint32_t bytes) {
  if (last_has_room()) {
    waiting_.back().payload += bytes;
  } else {
    waiting_.push_back({bytes, false});
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
  return std::accumulate(waiting_.begin(), waiting_.end(), uint32_t{0},
                         [](uint32_t sum, const Waiting& w) { return sum + w.payload; });
}

}  // namespace weft::sdp
