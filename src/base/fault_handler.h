// The handler of SIGSEGV and SIGBUS that makes an access of base/guarded.h fail instead of the
// process. All other faults are the program's: its handler runs for them, or the default action is
// taken, as if this one were not there. Each library that has one keeps the handlers of those that
// came before as if they were the program's.
#pragma once

#include <csignal>
#include <optional>

namespace weft {

struct FaultHandling {
  // sigaction(2). A library that stands in front of it for the program means the one behind.
  int (*set_action)(int signal, const struct sigaction* action, struct sigaction* old) = nullptr;
  // Memory that is there but protected is shown to the program's handler first, which may lift
  // that: it would have, had the program reached for it. The kernel does not do so in a call.
  bool program_lifts = false;
};

// Installs the handler, once for the library that calls it. Any thread.
void handle_faults(const FaultHandling& handling);

// sigaction(2) for the program: its actions for SIGSEGV and SIGBUS are kept behind the handler.
// Nothing for other signals, or before that is installed. Async-signal-safe, as sigaction(2) is.
std::optional<int> keep_behind_faults(int signal, const struct sigaction* action,
                                      struct sigaction* old);

}  // namespace weft
