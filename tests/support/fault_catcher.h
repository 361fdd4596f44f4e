// For tests of memory that cannot be reached: the least that a handler of its faults does. The one
// of weft is port/memory_faults.cc.
#pragma once

#include <ucontext.h>
#include <unistd.h>

#include <csignal>

#include "base/guarded.h"

namespace weft::test {

// As long as there is one, a fault inside of the functions of base/guarded.h ends in their error.
class FaultCatcher {
 public:
  FaultCatcher() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &segv_);
    ::sigaction(SIGBUS, &action, &bus_);
  }
  ~FaultCatcher() {
    ::sigaction(SIGSEGV, &segv_, nullptr);
    ::sigaction(SIGBUS, &bus_, nullptr);
  }
  FaultCatcher(const FaultCatcher&) = delete;
  FaultCatcher& operator=(const FaultCatcher&) = delete;

 private:
  static void on_fault(int, siginfo_t*, void* context) {
    if (!in_guarded(context)) _exit(99);
    (void)::pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
    leave_guarded(context);
  }

  struct sigaction segv_ {};
  struct sigaction bus_ {};
};

}  // namespace weft::test
