// What a signal does to a wait. The calls that weft stands in for are reads of the kernel's device
// files, which go on after a handler that was installed with SA_RESTART (signal(7)); poll(2) and
// epoll_wait(2), on which weft sleeps, never do.
//
// Inline, for librdmacm.so.1 asks as well and has none of the core's code (cm/service.h).
#pragma once

#include <cerrno>
#include <csignal>

namespace weft::port {

// A thread brings these upon itself, by an instruction and not in a wait. Crash reporters and
// sanitizers catch them, mostly without SA_RESTART.
inline bool is_fault(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT:
      return true;
    default:
      return false;
  }
}

// After a call ended with EINTR: would read(2) have gone on? So unless some handler that this
// thread may have run is one that ends system calls. Which signal it was nobody tells: a handler
// for one time only (SA_RESETHAND) is gone by now and does not count. Leaves errno as it is.
inline bool signals_restart_calls() {
  const int before = errno;
  bool restart = true;
  sigset_t blocked;
  (void)::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int n = 1; n <= SIGRTMAX && restart; ++n) {
    struct sigaction installed {};
    // Fails for those that libc keeps for itself.
    if (is_fault(n) || ::sigismember(&blocked, n) == 1 || ::sigaction(n, nullptr, &installed) != 0)
      continue;
    const bool caught = installed.sa_handler != SIG_DFL && installed.sa_handler != SIG_IGN;
    restart = !caught || (installed.sa_flags & SA_RESTART) != 0;
  }
  errno = before;
  return restart;
}

}  // namespace weft::port
