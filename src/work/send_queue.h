// The send queue of a queue pair: a ring of slots. Posting threads fill it under the queue pair's
// own lock; the engine's holder takes requests from it in order and frees them in order.
//
//                 head_             next to be sent          tail_
//   ...|  complete, |  sent, not complete  |  not yet sent    |  free ...
//         not polled
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <new>
#include <utility>

#include "work/work_request.h"

namespace weft::work {

class SendQueue {
 public:
  // Bytes that each slot has for its payload at least: a bind keeps its arguments there, whatever
  // the limits say.
  static constexpr uint32_t kLeastRoom = 48;
  // With up to `segments` SGEs.
  static constexpr uint32_t least_room(uint32_t segments) {
    return std::max(kLeastRoom, segments * uint32_t{sizeof(LocalSegment)});
  }
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
  // queue is full. Its fields are as the last user left them. A request takes its slot until its
  // completion is polled, as on an RNIC: programs count on a queue of completions that is as long.
  SendWqe* reserve(uint32_t ahead) {
    const uint64_t index = tail_.load(std::memory_order_relaxed) + ahead;
    const uint64_t given_back =
        silent_.load(std::memory_order_acquire) + polled_.load(std::memory_order_acquire);
    if (index - given_back >= capacity_) return nullptr;
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
  // A completion is on its way for the request at the head, and has its slot from now on.
  void report_head() { head_reported_ = true; }
  void free_head() {
    head_.store(head() + 1, std::memory_order_release);
    if (std::exchange(head_reported_, false)) return;
    silent_.store(silent_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Whose completion was taken from its queue: the holder of that queue's lock.
  void polled() {
    polled_.store(polled_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Engine side. No completion is in any queue any more.
  void forget_completions() {
    polled_.store(head() - silent_.load(std::memory_order_relaxed), std::memory_order_release);
  }

 private:
  static constexpr size_t round_up(size_t n) { return (n + 63) & ~size_t{63}; }
  static constexpr size_t payload_room(uint32_t segments, uint32_t inline_bytes) {
    return std::max(least_room(segments), inline_bytes);
  }

  const uint32_t capacity_;
  const uint32_t mask_;
  const size_t extra_;
  const size_t stride_;
  std::byte* const slots_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  std::atomic<uint64_t> polled_{0};  // completions
  alignas(64) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> silent_{0};  // requests that completed without a completion
  bool head_reported_ = false;
};

}  // namespace weft::work
