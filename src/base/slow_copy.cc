#include "base/slow_copy.h"

namespace weft {

bool copies_slowly_close_by() {
#if defined(__x86_64__)
  static const bool slow = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") != 0;
  }();
  return slow;
#else
  return false;
#endif
}

}  // namespace weft
