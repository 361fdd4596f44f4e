// What may be sent to the peer, and where to: its receive buffer by the pieces that it has told of,
// its credits, and room in the send buffer and in the send queue. Knows the protocol alone: no
// memory, no queue pair (spec/rsockets 4). One user at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "abi/rsockets/wire.h"

namespace weft::rsockets {

class SendWindow {
 public:
  // `buffer` bytes of send buffer; `messages` may be under way at a time.
  SendWindow(uint32_t buffer, uint32_t messages) : size_(buffer), slots_(messages) {}

  // What the peer said when the connection began.
  void open(uint16_t credits, const Target& first) {
    limit_ = credits;
    grant(first);
  }
  // The peer takes messages up to this number; it counts from 0 and in 16 bits.
  void set_limit(uint16_t limit) { limit_ = limit; }
  // A further piece of the peer's buffer. There is room for one while the one before it is in use.
  bool has_room_for_grant() const { return grants_ < targets_.size(); }
  void grant(const Target& t) {
    if (!has_room_for_grant() || t.length == 0) return;
    targets_[(first_ + grants_++) % targets_.size()] = t;
  }

  // Bytes that one message may carry now.
  uint32_t sendable() const {
    if (!may_send_message() || grants_ == 0) return 0;
    return std::min(targets_[first_].length, size_ - used_);
  }
  // Whether a message fits, whatever it writes.
  bool may_send_message() const { return slots_ > 0 && sent_ != limit_; }

  // Where the bytes of a message lie in the send buffer, and where they go.
  struct Piece {
    uint32_t offset;  // the rest, if any, lies at the buffer's beginning
    uint32_t until_end;
    uint32_t from_start;
    uint64_t address;  // at the peer
    uint32_t key;
  };
  // Takes `n` bytes, of sendable().
  Piece take(uint32_t n) {
    Target& t = targets_[first_];
    const Piece p = take_bytes(n, t.address, t.key);
    t.address += n;
    t.length -= n;
    if (t.length == 0) {
      first_ = (first_ + 1) % targets_.size();
      --grants_;
    }
    take_message();
    return p;
  }
  // Bytes that one Write without a message may carry now, to memory that the peer has mapped; and
  // takes them. They cost no credit.
  uint32_t writable() const { return slots_ > 0 ? size_ - used_ : 0; }
  Piece take_for(uint32_t n, uint64_t address, uint32_t key) {
    --slots_;
    return take_bytes(n, address, key);
  }
  // A message that takes nothing of either buffer.
  void take_message() {
    ++sent_;
    --slots_;
  }
  // The oldest message has left; `n` is what take() was given, or 0.
  void completed(uint32_t n) {
    used_ -= n;
    ++slots_;
  }
  bool all_completed(uint32_t messages) const { return slots_ == messages; }

 private:
  Piece take_bytes(uint32_t n, uint64_t address, uint32_t key) {
    const uint32_t until_end = std::min(n, size_ - head_);
    const Piece p{head_, until_end, n - until_end, address, key};
    head_ = (head_ + n) % size_;
    used_ += n;
    return p;
  }

  uint32_t size_;
  uint32_t head_ = 0;
  uint32_t used_ = 0;
  uint32_t slots_;
  uint16_t sent_ = 0;
  uint16_t limit_ = 0;
  std::array<Target, kTargets> targets_{};
  size_t first_ = 0;
  uint32_t grants_ = 0;
};

}  // namespace weft::rsockets
