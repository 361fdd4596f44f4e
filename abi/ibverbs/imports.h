// Where a loaded library keeps the addresses of the functions that it imports (its global offset
// table), and how one of them is replaced. For file_hook.cc and signal_hook.cc.
#pragma once

#include <link.h>

#include <span>
#include <string_view>

namespace weft::abi {

// Asked for each function that an object imports; nullptr leaves it as it is.
using Replacement = void* (*)(std::string_view function);

// A function, and what takes its place.
struct Substitute {
  template <class Function>
  Substitute(std::string_view replaced, Function* by)
      : name(replaced), target(reinterpret_cast<void*>(by)) {}
  std::string_view name;
  void* target;
};
// As a Replacement answers that knows those.
inline void* target_of(std::span<const Substitute> known, std::string_view function) {
  for (const Substitute& s : known) {
    if (s.name == function) return s.target;
  }
  return nullptr;
}

// Replaces what `object` imports, in the slots that calls go through. Idempotent. Everything that
// the ELF file says is held against the object's segments before it is followed: what does not fit
// is passed over, and so is a slot that cannot be made writable. The object must be wholly loaded,
// and only one thread may be here: call it from the callback of dl_iterate_phdr, under the loader's
// lock.
void replace_imports(const dl_phdr_info& object, Replacement replacement);

// Is `object` linked with a library whose name begins like this? The object need not be relocated
// yet; for the rest as replace_imports(). A look at its list of libraries alone: objects may import
// ten thousands of functions.
bool needs_library(const dl_phdr_info& object, std::string_view beginning);

}  // namespace weft::abi
