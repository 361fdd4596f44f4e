// Locks that a child of fork(2) may take: the thread that held one is not there.
#pragma once

#include <pthread.h>

#include <mutex>

namespace weft {

// Before `lock` is taken for the first time: from now on fork(2) waits until nobody has it, and in
// the child it is free. Whoever has it takes no other lock of this kind.
template <std::mutex& lock>
void hold_over_fork() {
  // Fails only without memory; then a child may find the lock held.
  static const int hooked =
      ::pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); });
  (void)hooked;
}

}  // namespace weft
