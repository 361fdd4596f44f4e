// For functions that access memory of the program's by instructions of their own, on x86-64:
// instructions that may fault, and where they go on then. base/guarded.cc has the handler's part.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

// Instructions between the labels 1 and 2, which do not touch the stack, may fault; then they go on
// at label `fault`.
#define WEFT_GUARDED(instructions)                            \
  "1:\n" instructions                                         \
  "2:\n"                                                      \
  ".pushsection weft_guarded, \"a\", @progbits\n .balign 4\n" \
  ".long 1b - ., 2b - ., %l[fault] - .\n"                     \
  ".popsection\n"

namespace weft::guarded {

// AddressSanitizer does not see such instructions. What it would report, it reports here.
inline void look_at(const void* p, size_t n) {
#if defined(__SANITIZE_ADDRESS__)
  auto* at = const_cast<char*>(static_cast<const char*>(p));
  if (auto* bad = static_cast<volatile char*>(__asan_region_is_poisoned(at, n))) (void)*bad;
#else
  (void)p;
  (void)n;
#endif
}

}  // namespace weft::guarded
