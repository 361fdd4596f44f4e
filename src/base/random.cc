#include "base/random.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/log.h"

namespace weft {

uint64_t SystemRandom::next() {
  uint64_t v = 0;
  // 8 bytes are never cut short; only the wait for the pool, early after boot, can be interrupted.
  // glibc's getrandom() is a cancellation point, and callers may hold locks.
  while (::syscall(SYS_getrandom, &v, sizeof v, 0) != sizeof v) {
    if (errno == EINTR) continue;
    // Tokens and STag keys that can be guessed would be worse than no program.
    WEFT_LOG(error, "getrandom(2) failed with errno %d; allow that system call, weft needs it",
             errno);
    std::abort();
  }
  return v;
}

}  // namespace weft
