// Locks that a child of fork(2) may take: the thread that held one is not there.
#pragma once

#include <pthread.h>

#include <mutex>

namespace weft {

// As an object beside `lock`, of static storage: fork(2) waits until nobody has the lock. In the
// child it is free, and `in_child` is called. Whoever has it takes no other lock of this kind, but
// one of a library that this one depends on.
//
// From the loading of the library on, when no other thread can fork yet. Were it told at the first
// use, a child could be born in the middle of that, and wait there for ever.
template <std::mutex& lock, void (*in_child)() = nullptr>
class HeldOverFork {
 public:
  HeldOverFork() noexcept {
    // Fails only without memory; then a child may find the lock held.
    (void)::pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); },
                           [] {
                             lock.unlock();
                             if constexpr (in_child != nullptr) in_child();
                           });
  }
};

}  // namespace weft
