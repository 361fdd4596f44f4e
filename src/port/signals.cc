#include "port/signals.h"

#include <cerrno>
#include <csignal>

namespace weft::port {
namespace {

// A thread brings these upon itself, by an instruction and not in a wait. Crash reporters and
// sanitizers catch them, mostly without SA_RESTART.
bool is_fault(int signal) {
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

}  // namespace

bool signals_restart_calls() {
  // The caller has EINTR to pass on, and sigaction(2) fails below.
  struct KeepErrno {
    ~KeepErrno() { errno = before; }
    const int before = errno;
  } const keep;
  sigset_t blocked;
  (void)::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int n = 1; n <= SIGRTMAX; ++n) {
    struct sigaction installed {};
    // Fails for those that libc keeps for itself.
    if (is_fault(n) || ::sigismember(&blocked, n) == 1 || ::sigaction(n, nullptr, &installed) != 0)
      continue;
    const bool caught = installed.sa_handler != SIG_DFL && installed.sa_handler != SIG_IGN;
    if (caught && (installed.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

}  // namespace weft::port
