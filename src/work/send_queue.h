// The send queue of a queue pair: a ring of slots. Posting threads fill it under the queue pair's
// own lock; the engine's holder takes requests from it in order and frees them in order.
//
//      head_            next to be sent            tail_
//   ...|  sent, not complete  |  not yet sent        |  free ...
#pragma once

#include <atomic>
#include <bit>
#include <memory>
#include <new>

#include "work/work_request.h"

namespace weft::work {

class SendQueue {
 public:
  // Bytes that each slot has for its payload at least: a bind keeps its arguments there, whatever
  // the limits say.
  static constexpr uint32_t kLeastRoom = 48;
  // `capacity` requests, each with up to `segments` SGEs or `inline_bytes` of data, and `extra`
  // bytes that only its owner knows the meaning of.
  SendQueue(uint32_t capacity, uint32_t segments, uint32_t inline_bytes, uint32_t extra = 0)
      : capacity_(capacity),
        mask_(std::bit_ceil(capacity) - 1),
        extra_(extra),
        stride_(round_up(sizeof(SendWqe) + payload_room(segments, inline_bytes) + extra)),
        slots_(static_cast<std::byte*>(
            ::operator new ((size_t{mask_} + 1) * stride_, std::align_val_t{64}))) {}
  ~SendQueue() { ::operator delete (slots_, std::align_val_t{64}); }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  uint32_t capacity() const { return capacity_; }

  // Posting side. The slot for the request number `ahead` past those published, or nullptr when the
  // queue is full. Its fields are as the last user left them.
  SendWqe* reserve(uint32_t ahead) {
    const uint64_t index = tail_.load(std::memory_order_relaxed) + ahead;
    if (index - head_.load(std::memory_order_acquire) >= capacity_) return nullptr;
    return &at(index);
  }
  void publish(uint32_t count) {
    tail_.store(tail_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }

  // Engine side.
  SendWqe& at(uint64_t index) {
    return *std::launder(reinterpret_cast<SendWqe*>(slots_ + (index & mask_) * stride_));
  }
  std::byte* extra_of(SendWqe& w) const {
    return reinterpret_cast<std::byte*>(&w) + (stride_ - extra_);
  }
  const std::byte* extra_of(const SendWqe& w) const {
    return reinterpret_cast<const std::byte*>(&w) + (stride_ - extra_);
  }
  uint64_t head() const { return head_.load(std::memory_order_relaxed); }
  uint64_t tail() const { return tail_.load(std::memory_order_acquire); }
  void free_head() { head_.store(head() + 1, std::memory_order_release); }

 private:
  static constexpr size_t round_up(size_t n) { return (n + 63) & ~size_t{63}; }
  static constexpr size_t payload_room(uint32_t segments, uint32_t inline_bytes) {
    const size_t list = segments * sizeof(LocalSegment);
    const size_t most = list > inline_bytes ? list : inline_bytes;
    return most > kLeastRoom ? most : kLeastRoom;
  }

  const uint32_t capacity_;
  const uint32_t mask_;
  const size_t extra_;
  const size_t stride_;
  std::byte* const slots_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) std::atomic<uint64_t> head_{0};
};

}  // namespace weft::work
