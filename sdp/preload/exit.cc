// The end of a process: what it has sent by SDP goes on its way first.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "sdp/preload/caller.h"
#include "sdp/sockets/last_bytes.h"

namespace {

[[gnu::destructor]] void before_end() {
  weft::sdp::await_last_bytes();
}

// The first one that is told, so that it is the last one that is called.
[[gnu::constructor]] void begin() {
  (void)std::at_quick_exit(weft::sdp::await_last_bytes);
}

}  // namespace

WEFT_SDP_EXPORT void _exit(int status) {
  weft::sdp::await_last_bytes();
  static const auto function = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_NEXT, "_exit"));
  function(status);
  __builtin_unreachable();
}

WEFT_SDP_EXPORT void _Exit(int status) noexcept {
  _exit(status);
}
