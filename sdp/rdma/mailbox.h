// Completions of one connection that have been taken from the queue and not been looked at yet: a
// ring that one thread at a time fills (whoever holds the queues, completions.h) and one at a time
// empties (whoever has the connection's lock).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weft::sdp {

struct Completed {
  uint32_t bytes = 0;
  uint8_t work = 0;    // of the connection's, as it numbers them
  uint8_t number = 0;  // the same
  bool ok = false;
};

class Mailbox {
 public:
  // A connection has no more requests at a time.
  static constexpr uint32_t kMost = 255;

  bool empty() const {
    return put_.load(std::memory_order_seq_cst) == taken_.load(std::memory_order_relaxed);
  }
  // False: there is no room, which is an error of the caller's.
  bool put(const Completed& completed) {
    const uint32_t at = put_.load(std::memory_order_relaxed);
    if (at - taken_.load(std::memory_order_acquire) > kMost) return false;
    ring_[at % ring_.size()] = completed;
    put_.store(at + 1, std::memory_order_seq_cst);
    return true;
  }
  // Only when not empty.
  Completed take() {
    const uint32_t at = taken_.load(std::memory_order_relaxed);
    const Completed completed = ring_[at % ring_.size()];
    taken_.store(at + 1, std::memory_order_release);
    return completed;
  }

 private:
  std::array<Completed, kMost + 1> ring_{};
  std::atomic<uint32_t> put_{0};
  std::atomic<uint32_t> taken_{0};
};

}  // namespace weft::sdp
