#include "port/memory_faults.h"

#include "base/fault_handler.h"

namespace weft::port {

void catch_memory_faults() {
  handle_faults({.set_action = ::sigaction, .program_lifts = true});
}

int program_sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
  const auto outcome = keep_behind_faults(signal, action, old);
  return outcome ? *outcome : ::sigaction(signal, action, old);
}

}  // namespace weft::port
