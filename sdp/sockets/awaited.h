// A connection that a thread of the program's waits for. The thread may never come back: the
// handler of a signal may jump out of its call, or it is cancelled in it. So the loop writes to
// nothing that lies on the thread's stack, and what nobody takes is known.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "sdp/loop/handlers.h"
#include "sdp/rdma/session.h"

namespace weft::sdp {

class Awaited {
 public:
  using Result = std::pair<std::shared_ptr<Session>, int>;

  Awaited() { (void)::sem_init(&there_, 0, 0); }
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;
  ~Awaited() { (void)::sem_destroy(&there_); }

  // The loop, once. False: it is given up already.
  bool put(std::shared_ptr<Session> session, int error) {
    result_ = {std::move(session), error};
    (void)::sem_post(&there_);
    return owner_ != Owner::nobody;
  }

  // How a call waits, as connect(2) does.
  struct Patience {
    const Handlers::Ran* ran = nullptr;  // since the call began; none: handlers do not end it
    std::optional<std::chrono::microseconds> limit;
  };
  // The thread, once, holding handlers, which run while it waits. Nothing with EINTR where one of
  // them ended the call, with EINPROGRESS at its limit, with ETIMEDOUT where the loop has given it
  // up.
  Result take(const Patience& patience) {
    const int end = wait(patience);
    if (end != 0) return give_up() ? Result{nullptr, end} : Result{nullptr, ETIMEDOUT};
    return leave_to(Owner::thread) ? std::move(result_) : Result{nullptr, ETIMEDOUT};
  }
  // True, once, if the thread has not taken it, and it does not any more.
  bool give_up() { return leave_to(Owner::nobody); }

 private:
  enum class Owner : uint8_t { open, thread, nobody };
  bool leave_to(Owner owner) {
    Owner before = Owner::open;
    return owner_.compare_exchange_strong(before, owner);
  }
  int wait(const Patience& patience) {
    timespec until{};
    (void)::clock_gettime(CLOCK_REALTIME, &until);
    if (patience.limit) add(until, *patience.limit);
    for (;;) {
      int error = 0;
      {
        const LetHandlersRun meanwhile;
        const int waited = patience.limit ? ::sem_timedwait(&there_, &until) : ::sem_wait(&there_);
        error = waited == 0 ? 0 : errno;
      }
      if (error == 0) return 0;
      if (error == ETIMEDOUT) return EINPROGRESS;
      if (patience.ran == nullptr) continue;
      // The kernel's rule: with a time limit SA_RESTART does not count.
      if (patience.limit ? patience.ran->any() : patience.ran->interrupts()) return EINTR;
    }
  }
  static void add(timespec& time, std::chrono::microseconds more) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(more);
    time.tv_sec += whole.count();
    time.tv_nsec += std::chrono::nanoseconds{more - whole}.count();
    if (time.tv_nsec < 1'000'000'000) return;
    time.tv_nsec -= 1'000'000'000;
    ++time.tv_sec;
  }

  sem_t there_;
  Result result_;  // behind there_
  std::atomic<Owner> owner_{Owner::open};
};

}  // namespace weft::sdp
