// When the helper wakes up by itself: one time that every thread may bring forward, and one of them
// at a time put off, and the kernel's timer that stands for it (docs/design/02).
//
// There is no lock: the timer may wake the helper in the middle of the system call that sets it, on
// the processor of the very thread that makes the call. So calls may reach the kernel in another
// order than the times were agreed on. Two rules keep the earliest of them from being lost: a
// thread that has made a call looks whether an earlier time stands by then, and makes another for
// that; and when the timer has rung nothing is taken to be set in the kernel any more, since the
// ring may be a late call's, which took the place of a time that is still to come.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/time.h"

namespace weft::engine {

// SetTimer: void(Time), makes the kernel's timer ring then, and no more at any other time. Called
// by any thread, several at once.
template <class SetTimer>
class WakeUpTime {
 public:
  explicit WakeUpTime(SetTimer set_timer) : set_timer_(std::move(set_timer)) {}

  // Any thread: wake up at `when`, or earlier.
  void no_later_than(Time when) {
    // Ordered with what a thread told before that it sleeps no more, and so the helper has to
    // listen.
    int64_t at = at_.load(std::memory_order_seq_cst);
    do {
      if (when.ns() >= at) return;
    } while (!at_.compare_exchange_weak(at, when.ns(), std::memory_order_seq_cst));
    tell_kernel(when.ns());
  }

  // One thread at a time, which knows what the time that stands was for: nothing needs the helper
  // before `when`. A thread that asks for an earlier time meanwhile, and finds that the time that
  // stands will do, gets `when`.
  void put_off(Time when) {
    int64_t at = at_.load(std::memory_order_seq_cst);
    if (at >= when.ns() || !at_.compare_exchange_strong(at, when.ns(), std::memory_order_seq_cst)) {
      return;
    }
    tell_kernel(when.ns());
  }

  // Is no_later_than(when) without effect? Ordered as that is.
  bool stands_before(Time when) const { return when.ns() >= at_.load(std::memory_order_seq_cst); }

  // The helper alone: the timer has rung.
  void rang(Time now) {
    const Time was = Time::from_ns(at_.exchange(INT64_MAX, std::memory_order_seq_cst));
    if (was > now && !was.is_never()) no_later_than(was);
  }

 private:
  void tell_kernel(int64_t at) {
    for (;;) {
      set_timer_(Time::from_ns(at));
      const int64_t stands = at_.load(std::memory_order_seq_cst);
      if (stands >= at) return;
      at = stands;
    }
  }

  SetTimer set_timer_;
  std::atomic<int64_t> at_{INT64_MAX};
};

}  // namespace weft::engine
