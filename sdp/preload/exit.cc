// The end of a process: what it has sent by SDP goes on its way first.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "sdp/preload/caller.h"
#include "sdp/sockets/library.h"

using weft::sdp::Library;

namespace {

[[gnu::destructor]] void before_end() {
  Library::at_exit();
}

}  // namespace

WEFT_SDP_EXPORT void _exit(int status) {
  Library::at_exit();
  static const auto function = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_NEXT, "_exit"));
  function(status);
  __builtin_unreachable();
}

WEFT_SDP_EXPORT void _Exit(int status) noexcept {
  _exit(status);
}
