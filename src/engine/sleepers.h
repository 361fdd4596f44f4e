// Threads of the program that sleep, or are about to: on the engine's sockets, or on a descriptor
// of their own until something is published.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/time.h"
#include "engine/helper_policy.h"

namespace weft::engine {

class Engine;

// A thread that can be cancelled where it says so, and nowhere else: one that holds the engine must
// finish its turn.
class Cancelable {
 public:
  explicit Cancelable(int state) { pthread_setcancelstate(state, &before); }
  ~Cancelable() { pthread_setcancelstate(before, nullptr); }
  Cancelable(const Cancelable&) = delete;
  Cancelable& operator=(const Cancelable&) = delete;
  int before = PTHREAD_CANCEL_ENABLE;
};

class Sleepers {
 public:
  Sleepers();

  // See Engine::wait().
  int wait(Engine& engine, int fd, const std::function<bool()>& ready);

  // --- any thread
  // How many sleep on the sockets; and on descriptors of their own.
  int on_sockets(std::memory_order order) const { return on_sockets_.load(order); }
  int expected(std::memory_order order) const { return expected_.load(order); }
  // One more; `polls`: those that were counted so far. True: this is the first.
  bool expect(uint64_t polls) {
    expected_since_.store(polls, std::memory_order_seq_cst);
    return expected_.fetch_add(1, std::memory_order_seq_cst) == 0;
  }
  // Must the sockets be heard for one of those? Not while the program has long been polling since
  // the last of them was announced: what comes for them its polls find, and the helper when it
  // stops. UCX, for one, arms a queue for good, and polls another.
  bool must_hear(uint64_t polls) const {
    return expected_.load(std::memory_order_seq_cst) > 0 &&
           polls - expected_since_.load(std::memory_order_seq_cst) < kLongPolls;
  }
  void forget() { expected_.fetch_sub(1, std::memory_order_relaxed); }
  // The calling thread may be about to sleep; `polls`: those that were counted so far.
  void may_sleep(uint64_t polls) {
    may_sleep_since_.store(polls, std::memory_order_relaxed);
    may_sleep_.store(this_thread(), std::memory_order_relaxed);
  }

  // --- engine holder
  void polled() { poller_ = this_thread(); }
  // May nobody come back to send what the calling thread posts?
  bool may_leave_output(uint64_t polls) const {
    return is_about_to_sleep(polls) || on_sockets(std::memory_order_relaxed) > 0;
  }

  // Names the calling thread.
  static const void* this_thread() { return reinterpret_cast<const void*>(::pthread_self()); }

 private:
  static constexpr uint64_t kPollsOn = 16;  // by a thread that could sleep instead: it polls on
  // So many take about as long as the helper may take to notice that there are no more: some
  // milliseconds at most are added to a sleep that has waited for as long.
  static constexpr uint64_t kLongPolls = 4096;

  bool is_about_to_sleep(uint64_t polls) const;
  bool spin(Engine& engine, const std::function<bool()>& ready);

  std::atomic<int> on_sockets_{0};
  std::atomic<int> expected_{0};
  std::atomic<uint64_t> expected_since_{0};      // of the last one, counted in polls
  std::atomic<const void*> may_sleep_{nullptr};  // the thread that said so last
  std::atomic<uint64_t> may_sleep_since_{0};     // counted in polls
  const void* poller_ = nullptr;                 // the thread that polled last; holder's
  SpinPolicy spin_policy_;
};

}  // namespace weft::engine
