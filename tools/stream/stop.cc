#include "stream/stop.h"

#include <csignal>

namespace weft::stream {
namespace {

volatile std::sig_atomic_t asked = 0;

void remember(int) {
  asked = 1;
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = remember;
  // The second one ends the process as usual.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stop_asked() {
  return asked != 0;
}

}  // namespace weft::stream
