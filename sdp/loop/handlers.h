// Handlers of the program's signals wait while their thread has one of the library's locks. A
// handler may call the library, jump out of what it interrupted, fork or end the process, and would
// meet or leave a lock that nobody lets go of.
//
// The library's function stands in front of each handler. Where it finds that the thread has a
// lock, it blocks the signal and sends it once more to the thread, with all that was told of it;
// the last lock that the thread lets go of unblocks it. Signals that a thread brings upon itself
// are not held up, for the instruction that did it would do so again.
//
// A thread with a lock is not cancelled either: many calls below it are cancellation points, in
// functions that are none, or behind bytes that were taken.
#pragma once

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <mutex>

namespace weft::sdp {

// sigaction(2), signal(2), sysv_signal(3) and siginterrupt(3) for the program. Async-signal-safe.
class Handlers {
 public:
  using Simple = void (*)(int);
  static int set_action(int signal, const struct sigaction* action, struct sigaction* old);
  static Simple set(int signal, Simple handler);
  static Simple set_for_once(int signal, Simple handler);
  static int set_interrupts(int signal, bool does);
  // From now on memory of the program's that is not there makes a guarded access fail, as it does
  // in a call of the kernel's (base/guarded.h). The program's actions stay behind that.
  static void guard_memory();

  // Which handlers of the program's have run on the calling thread. A call that looks before it
  // sleeps in the kernel's asks this: the kernel would not know of them.
  class Ran {
   public:
    // Any at all, since this was made: poll(2) and its relatives end with EINTR.
    bool any() const { return t_ran != any_; }
    // One without SA_RESTART, which ends recv(2) and send(2).
    bool interrupts() const { return t_interrupted != interrupted_; }
    // A call that has moved nothing so far does so behind handlers with SA_RESTART.
    void begin_anew() { any_ = t_ran; }

   private:
    std::sig_atomic_t any_ = t_ran;
    const std::sig_atomic_t interrupted_ = t_interrupted;
  };

  // The calling thread has a lock, one more or one less.
  static void hold() {
    t_held = t_held + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (t_held == 1) (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &t_cancel);
  }
  static void let_go() {
    if (t_held == 1) (void)::pthread_setcancelstate(t_cancel, nullptr);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_held = t_held - 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (t_held == 0 && t_waiting != 0) run_waiting();
  }

 private:
  static void on_signal(int signal, siginfo_t* info, void* context);
  static void run_waiting();

  // A handler must find them allocated.
  static inline thread_local volatile std::sig_atomic_t t_held
      __attribute__((tls_model("initial-exec"))) = 0;
  // Whether the thread could be cancelled before it had a lock.
  static inline thread_local int t_cancel __attribute__((tls_model("initial-exec"))) =
      PTHREAD_CANCEL_ENABLE;
  static inline thread_local volatile std::sig_atomic_t t_ran
      __attribute__((tls_model("initial-exec"))) = 0;
  static inline thread_local volatile std::sig_atomic_t t_interrupted
      __attribute__((tls_model("initial-exec"))) = 0;
  static inline thread_local volatile std::sig_atomic_t t_waiting
      __attribute__((tls_model("initial-exec"))) = 0;
};

// Handlers wait until this ends, as where the thread has a lock.
class HoldHandlers {
 public:
  HoldHandlers() { Handlers::hold(); }
  ~HoldHandlers() { Handlers::let_go(); }
  HoldHandlers(const HoldHandlers&) = delete;
  HoldHandlers& operator=(const HoldHandlers&) = delete;
};

// Inside of it: they run, and may jump out of what they interrupt.
class LetHandlersRun {
 public:
  LetHandlersRun() { Handlers::let_go(); }
  ~LetHandlersRun() { Handlers::hold(); }
  LetHandlersRun(const LetHandlersRun&) = delete;
  LetHandlersRun& operator=(const LetHandlersRun&) = delete;
};

// std::mutex for the library.
class Mutex {
 public:
  void lock() {
    Handlers::hold();
    mutex_.lock();
  }
  bool try_lock() {
    Handlers::hold();
    const bool locked = mutex_.try_lock();
    if (!locked) Handlers::let_go();
    return locked;
  }
  void unlock() {
    mutex_.unlock();
    Handlers::let_go();
  }

 private:
  std::mutex mutex_;
};

}  // namespace weft::sdp
