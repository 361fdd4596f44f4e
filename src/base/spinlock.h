// A lock for sections of a few dozen instructions: no system call when free, polite to the other
// hardware thread when not. Its holder may have lost the CPU: then a waiter yields, and after some
// turns of that it sleeps, for a thread with a real-time priority yields to nobody below it.
#pragma once

#include <atomic>

namespace weft {

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What a thread does that looks for something again and again which another thread of unknown
// class and processor is about to do: spins, yields, sleeps. One for each wait; errno stays, and
// nothing in it is a cancellation point.
class Backoff {
 public:
  // Between two looks.
  void pause() {
    if (++turns_ % kSpins != 0) {
      cpu_relax();
    } else {
      let_others_run();
    }
  }

 private:
  static constexpr unsigned kSpins = 200;
  void let_others_run();
  unsigned turns_ = 0;
};

class Spinlock {
 public:
  void lock() {
    if (try_lock()) [[likely]]
      return;
    wait();
  }
  bool try_lock() { return !locked_.exchange(true, std::memory_order_acquire); }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  void wait();
  std::atomic<bool> locked_{false};
};

}  // namespace weft
