// A ring of posted receives. Programs post under the owner's lock; the consumer takes them in
// order.
#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "verbs/types.h"
#include "work/work_request.h"

namespace weft::verbs {

struct ReceiveRequest {
  uint64_t wr_id = 0;
  const LocalSegment* segments = nullptr;
  uint32_t count = 0;
};

class ReceiveQueue {
 public:
  ReceiveQueue(uint32_t capacity, uint32_t segments)
      : capacity_(capacity),
        most_segments_(segments),
        mask_(std::bit_ceil(capacity) - 1),
        stride_(sizeof(Slot) + segments * sizeof(LocalSegment)),
        slots_(static_cast<std::byte*>(::operator new((size_t{mask_} + 1) * stride_))) {}
  ~ReceiveQueue() { ::operator delete(slots_); }
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  uint32_t capacity() const { return capacity_; }
  uint32_t most_segments() const { return most_segments_; }
  // Posted and not taken. Any thread.
  uint64_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
  }
  bool empty() const { return size() == 0; }

  // Posting side. Errors: invalid (more segments than the queue allows), no_memory (full).
  Outcome<Ok> post(const ReceiveRequest& r) {
    if (r.count > most_segments_) return fail(Errc::invalid);
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) >= capacity_) return fail(Errc::no_memory);
    Slot& s = at(tail);
    s.wr_id = r.wr_id;
    s.count = r.count;
    if (r.count > 0) std::memcpy(s.segments(), r.segments, r.count * sizeof(LocalSegment));
    tail_.store(tail + 1, std::memory_order_release);
    return Ok{};
  }
  // Consumer. False when there is none.
  bool take(work::Receive& out) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    Slot& s = at(head);
    out.wr_id = s.wr_id;
    out.segments = s.count;
    out.length = 0;
    for (uint32_t i = 0; i < s.count; ++i) {
      out.segment[i] = s.segments()[i];
      out.length += out.segment[i].length;
    }
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  struct Slot {
    uint64_t wr_id;
    uint32_t count;
    uint32_t unused;
    LocalSegment* segments() { return reinterpret_cast<LocalSegment*>(this + 1); }
  };
  Slot& at(uint64_t index) {
    return *std::launder(reinterpret_cast<Slot*>(slots_ + (index & mask_) * stride_));
  }

  const uint32_t capacity_;
  const uint32_t most_segments_;
  const uint32_t mask_;
  const size_t stride_;
  std::byte* const slots_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) std::atomic<uint64_t> head_{0};
};

}  // namespace weft::verbs
