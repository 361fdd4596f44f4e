// What the kernel's scheduler is told of an engine's helper thread (docs/design/18, "What the
// scheduler is told"). A thread begins with the class and processors of the one that makes it, and
// those that suit a thread which spins on its memory starve the one that is to fill that memory.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace weft::engine {

// How the scheduler treats a thread.
struct Schedule {
  // Policy of sched_setscheduler(2), without SCHED_RESET_ON_FORK.
  int policy = 0;
  // Of SCHED_FIFO and SCHED_RR; else 0.
  int priority = 0;
  // The processors that it may use, a bit each: as many as a kernel may be built for.
  std::array<unsigned long, 128> cpus{};
  size_t cpus_size = 0;  // bytes of `cpus` that the kernel wrote; 0: it did not tell

  bool real_time() const;
};

// 0: of the calling thread.
Schedule schedule_of(pid_t thread) noexcept;
// Of the process's first thread when this library was loaded: what the starter of the process
// gave it (taskset(1), chrt(1), a container), before the program chose for its threads.
const Schedule& schedule_at_load();

class HelperSchedule {
 public:
  // By the helper, before all else. `maker`: the thread that has made it. Takes the processors that
  // the process had when it was loaded, and the class that is wanted.
  void begin(const Schedule& maker);
  // By the maker: sleeps until that is done. A maker with a real-time priority that never sleeps
  // would not let the helper begin on its own processor, where it is made.
  void wait_until_begun() const { begun_.wait(false, std::memory_order_acquire); }

  // Any thread: the calling one relies on the helper. One with a real-time priority may spin on its
  // memory on the helper's processor, so that the helper has to stand above it. One system call,
  // and another when the helper has to be raised.
  void serve_caller();

  // The helper's priority above those of the ordinary classes; 0: it has none.
  int priority() const { return priority_.load(std::memory_order_relaxed); }

 private:
  void choose(const Schedule& maker);
  void raise_above(int priority);

  std::atomic<bool> begun_{false};
  std::atomic<pid_t> helper_{0};
  std::atomic<int> priority_{0};
  std::mutex raising_;
  int refused_ = 0;  // the least priority that the kernel did not allow
};

}  // namespace weft::engine
