// One counter: a number that only grows, in memory that other processes may read (observe/).
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::stats {

// A cell has one writer at a time: the engine's holder, or the one thread that the cell is
// for. So counting is a load and a store, and never a locked instruction.
class Cell {
 public:
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  // For cells that several threads write, away from the data path.
  void add_shared(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  // Any thread, any process. What was stored with move_to() before this value is seen too.
  uint64_t value() const { return value_.load(std::memory_order_acquire); }

  // Takes what is counted here over to `total`. Readers find it in one of the two, or are told by
  // the sequence number of the engine (blocks.h) to look again.
  void move_to(Cell& total) {
    total.value_.store(
        total.value_.load(std::memory_order_relaxed) + value_.load(std::memory_order_relaxed),
        std::memory_order_release);
    value_.store(0, std::memory_order_release);
  }

 private:
  std::atomic<uint64_t> value_{0};
};
static_assert(sizeof(Cell) == 8 && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace weft::stats
