// What this library frees by `delete`. The operators are its own (libibverbs.map exports neither):
// the program's, or libstdc++'s, free each block in the end. Where the thread holds an engine that
// is put off (base/put_off_free.h). Blocks for types that ask for more alignment than malloc gives
// are freed at once.
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/put_off_free.h"

namespace {

using weft::PutOffFree;

// The program's, by the name that the compiler gives it.
PutOffFree::Free find_delete(const char* name) {
  void* const found = ::dlsym(RTLD_DEFAULT, name);
  return found != nullptr ? reinterpret_cast<PutOffFree::Free>(found) : &std::free;
}

}  // namespace

// Blocks come from the operators that stand beside those, and the library needs none of its own.
// NOLINTBEGIN(misc-new-delete-overloads)
void operator delete(void* block) noexcept {
  static const PutOffFree::Free really = find_delete("_ZdlPv");
  if (block != nullptr && !PutOffFree::keep(block, really)) really(block);
}

void operator delete[](void* block) noexcept {
  static const PutOffFree::Free really = find_delete("_ZdaPv");
  if (block != nullptr && !PutOffFree::keep(block, really)) really(block);
}

void operator delete(void* block, std::size_t) noexcept {
  ::operator delete(block);
}

void operator delete[](void* block, std::size_t) noexcept {
  ::operator delete[](block);
}
// NOLINTEND(misc-new-delete-overloads)
