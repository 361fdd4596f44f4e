#include "base/put_off_free.h"

#include <new>

namespace weft {

constinit thread_local PutOffFree::OfThread PutOffFree::of_thread
    __attribute__((tls_model("initial-exec")));

bool PutOffFree::keep(void* block, Kept& kept, Free really) noexcept {
  if (of_thread.depth == 0) return false;
  kept.first = ::new (block) Link{kept.first};
  kept.really = really;
  return true;
}

// A program's `free` may come back here, and hold an engine meanwhile.
void PutOffFree::free_all(Kept& kept) noexcept {
  while (Link* const link = kept.first) {
    kept.first = link->next;
    kept.really(link);
  }
}

}  // namespace weft
