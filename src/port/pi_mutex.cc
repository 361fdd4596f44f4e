#include "port/pi_mutex.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/spinlock.h"

namespace weft::port {
namespace {

constexpr int kSpins = 1000;  // before a waiter sleeps

// The child's one thread has another number than its parent's.
// Without memory for it a child that waits spins instead of sleeping.
[[maybe_unused]] const int g_hooked =
    ::pthread_atfork(nullptr, nullptr, [] { detail::thread_id = 0; });

}  // namespace

namespace detail {

constinit thread_local uint32_t thread_id __attribute__((tls_model("initial-exec"))) = 0;

uint32_t ask_thread_id() {
  thread_id = static_cast<uint32_t>(::syscall(SYS_gettid));
  return thread_id;
}

}  // namespace detail

void PiMutex::lock() {
  for (int turns = 0; turns < kSpins; ++turns) {
    if (!held() && try_lock()) return;
    cpu_relax();
  }
  const int error = errno;
  for (Backoff backoff;
       ::syscall(SYS_futex, &word_, FUTEX_LOCK_PI_PRIVATE, 0, nullptr, nullptr, 0) != 0;) {
    if (errno == EINTR || errno == EAGAIN) continue;
    // A kernel or a filter of system calls that has none of it.
    if (try_lock()) break;
    backoff.pause();
  }
  errno = error;
  // Where the kernel has written the word, this is what puts that which the last holder did before
  // that which this thread does.
  (void)word_.load(std::memory_order_seq_cst);
}

void PiMutex::hand_over() {
  const int error = errno;
  // For the thread that the kernel gives it to.
  (void)word_.fetch_or(FUTEX_WAITERS, std::memory_order_seq_cst);
  if (::syscall(SYS_futex, &word_, FUTEX_UNLOCK_PI_PRIVATE, 0, nullptr, nullptr, 0) != 0) {
    word_.store(0, std::memory_order_seq_cst);  // no waiter of the kernel's
  }
  errno = error;
}

}  // namespace weft::port
