// Bytes that wait to be sent, in the buffers that they are sent from: a ring, of which the oldest
// are with the adapter, and the last is still being filled.
#pragma once

#include <cstdint>

#include "sdp/rdma/resources.h"
#include "sdp/rdma/ring.h"

namespace weft::sdp {

class SendBuffers {
 public:
  static constexpr uint32_t kCount = 16;

  bool allocate(ibv_pd* pd, uint32_t size) { return buffers_.allocate(pd, kCount, size); }
  // Of a message's payload, by the peer's receives.
  void limit_payload(uint32_t most) { payload_ = most; }

  // How many bytes may be here at once; SO_SNDBUF.
  void limit_bytes(uint32_t most) { most_ = most; }

  // Room for the next bytes of the stream, at least one, or none. What was put there is added by
  // filled().
  MutableBytes room();
  void filled(uint32_t bytes);

  // The oldest message that is not with the adapter yet.
  struct Message {
    std::byte* header = nullptr;
    uint32_t payload = 0;
    bool urgent = false;
  };
  bool waiting() const { return !waiting_.empty(); }
  Message next() const {
    return {buffers_.at(first_waiting()), waiting_.front().payload, waiting_.front().urgent};
  }
  // The last byte is urgent, so that no other follows it in its message. One that is with the
  // adapter already stays what it is.
  void mark_urgent() {
    if (!waiting_.empty()) waiting_.back().urgent = true;
  }
  void posted();
  // The adapter is done with its oldest one.
  void completed();

  uint32_t key() const { return buffers_.key(); }
  uint32_t waiting_bytes() const;
  // With those that the adapter has.
  uint32_t bytes() const { return bytes_; }
  bool empty() const { return waiting_.empty() && posted_.empty(); }

 private:
  uint32_t first_waiting() const {
    return (first_ + static_cast<uint32_t>(posted_.size())) % buffers_.count();
  }

  Buffers buffers_;
  uint32_t payload_ = 0;
  uint32_t most_ = UINT32_MAX;
  uint32_t bytes_ = 0;             // in all of them
  uint32_t first_ = 0;             // the oldest that the adapter has
  Ring<uint32_t, kCount> posted_;  // bytes of those that it has
  struct Waiting {
    uint32_t payload = 0;
    bool urgent = false;
  };
  bool last_has_room() const {
    return !waiting_.empty() && !waiting_.back().urgent && waiting_.back().payload < payload_;
  }
  Ring<Waiting, kCount> waiting_;  // those behind
};

}  // namespace weft::sdp
