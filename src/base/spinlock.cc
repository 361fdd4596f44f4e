#include "base/spinlock.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace weft {
namespace {

constexpr unsigned kYields = 16;
constexpr long kFirstSleep = 20'000;  // ns
constexpr long kLongestSleep = 1'000'000;

}  // namespace

void Backoff::let_others_run() {
  const int error = errno;
  const unsigned round = turns_ / kSpins;
  if (round <= kYields) {
    (void)::sched_yield();
  } else {
    const unsigned doublings = std::min(round - kYields - 1, 10U);
    const timespec span{.tv_sec = 0, .tv_nsec = std::min(kFirstSleep << doublings, kLongestSleep)};
    // nanosleep(2), which glibc makes a cancellation point.
    (void)::syscall(SYS_nanosleep, &span, nullptr);
  }
  errno = error;
}

void Spinlock::wait() {
  for (Backoff backoff;;) {
    do {
      backoff.pause();
    } while (locked_.load(std::memory_order_relaxed));
    if (try_lock()) return;
  }
}

}  // namespace weft
