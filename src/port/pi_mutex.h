// A lock for sections of microseconds and more, as a turn of an engine is. A thread that waits for
// it sleeps, and lends its priority to the holder (futex(2), FUTEX_LOCK_PI, which takes no rights):
// a thread under SCHED_FIFO waits for a holder of an ordinary class on its own processor, and no
// third thread comes between. Free, or held by one alone, it costs no system call.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::port {

namespace detail {
// Each turn of an engine asks for it several times, and no other storage of a thread is as near.
extern constinit thread_local uint32_t thread_id __attribute__((tls_model("initial-exec")));
uint32_t ask_thread_id();
}  // namespace detail

// The calling thread's, as gettid(2) has it; after the first call without a system call.
inline uint32_t thread_id() {
  return detail::thread_id != 0 ? detail::thread_id : detail::ask_thread_id();
}

class PiMutex {
 public:
  PiMutex() = default;
  PiMutex(const PiMutex&) = delete;
  PiMutex& operator=(const PiMutex&) = delete;

  // The calls are totally ordered with each other and with other sequentially consistent
  // operations, so that a thread which fails here has told the holder before what it left behind.
  bool try_lock() {
    uint32_t free = 0;
    return word_.compare_exchange_strong(free, thread_id(), std::memory_order_seq_cst);
  }
  // Not for the holder itself.
  void lock();
  // By the thread that has it.
  void unlock() {
    uint32_t own = thread_id();
    if (!word_.compare_exchange_strong(own, 0, std::memory_order_seq_cst)) hand_over();
  }
  // By the calling thread.
  bool held_here() const {
    return (word_.load(std::memory_order_relaxed) & kHolder) == thread_id();
  }
  bool held() const { return word_.load(std::memory_order_seq_cst) != 0; }

 private:
  static constexpr uint32_t kHolder = 0x3fffffff;  // FUTEX_TID_MASK
  void hand_over();
  // As the kernel wants it: the holder's thread id, and FUTEX_WAITERS when it has to be told.
  std::atomic<uint32_t> word_{0};
};

}  // namespace weft::port
