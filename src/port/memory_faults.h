// Faults in the program's memory (docs/design/06). Registered memory may be unmapped, truncated or
// protected when weft reaches for it; a handler of SIGSEGV and SIGBUS makes that access fail
// instead of the process (base/guarded.h). All other faults are the program's, and its handler runs
// for them, or the default action is taken, as if this one were not there.
#pragma once

#include <csignal>

namespace weft::port {

// Installs the handler, once for the process. Any thread.
void catch_memory_faults();

// sigaction(2) for the program, of any signal: its actions for SIGSEGV and SIGBUS are kept behind
// weft's handler once that is installed. Async-signal-safe, as sigaction(2) is.
int program_sigaction(int signal, const struct sigaction* action, struct sigaction* old);

}  // namespace weft::port
