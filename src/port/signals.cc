#include "port/signals.h"

#include <csignal>

namespace weft::port {

bool signals_restart_calls() {
  sigset_t blocked;
  (void)::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int n = 1; n <= SIGRTMAX; ++n) {
    struct sigaction installed {};
    // Fails for those that libc keeps for itself.
    if (::sigismember(&blocked, n) == 1 || ::sigaction(n, nullptr, &installed) != 0) continue;
    const bool caught = installed.sa_handler != SIG_DFL && installed.sa_handler != SIG_IGN;
    if (caught && (installed.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

}  // namespace weft::port
