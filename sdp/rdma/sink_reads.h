// RDMA Reads of what the peer advertises (spec/sdp 6), one at a time: to memory of the user's, or
// staged, to the session's own.
#pragma once

#include <cstdint>
#include <utility>

#include "sdp/rdma/resources.h"

namespace weft::sdp {

class SinkReads {
 public:
  // Where the next Read goes.
  struct Target {
    std::byte* to = nullptr;
    uint32_t most = 0;
    uint32_t key = 0;
  };

  bool under_way() const { return bytes_ > 0; }
  // Nor has the thread whose memory the last one came to asked how much that was.
  bool may_begin() const { return !under_way() && arrived_ == 0; }
  uint32_t bytes() const { return bytes_; }
  // The session's own memory, made when it is first asked for. Nothing to read to while what was
  // staged before is not taken, or there is no memory.
  Target stage(ibv_pd* pd);
  bool has_staging() const { return staging_.allocated(); }

  void begin(const Target& target, uint32_t bytes) { to_ = target.to, bytes_ = bytes; }
  // The Read has completed. What was staged is the user's to take, and then taken().
  Bytes end();
  void taken() { waits_ = false; }
  // Bytes that came to the user's memory, once.
  uint32_t take_arrived() { return std::exchange(arrived_, 0); }
  // It never will.
  void give_up() { bytes_ = 0; }

 private:
  Buffers staging_;
  std::byte* to_ = nullptr;
  uint32_t bytes_ = 0;  // of the Read under way
  uint32_t arrived_ = 0;
  bool waits_ = false;  // for the user to take what was staged
};

}  // namespace weft::sdp
