// A lock for sections of a few dozen instructions: no system call when free, polite to the other
// hardware thread when not. After a bounded number of turns it yields, because its holder may have
// lost the CPU.
#pragma once

#include <sched.h>

#include <atomic>

namespace weft {

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Spinlock {
 public:
  void lock() {
    for (int turns = 0; locked_.exchange(true, std::memory_order_acquire);) {
      do {
        if (++turns > 200) {
          turns = 0;
          sched_yield();
        } else {
          cpu_relax();
        }
      } while (locked_.load(std::memory_order_relaxed));
    }
  }
  bool try_lock() { return !locked_.exchange(true, std::memory_order_acquire); }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace weft
