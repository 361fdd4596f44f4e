// The kernel copies what a socket sends and receives by REP MOVSB where the processor says that it
// is fast. AMD's do not keep that where the destination lies a little further in its page than the
// source: a twentieth of the rate (docs/design/16).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// Is this one of these processors? Any thread.
bool copies_slowly_close_by();

// Is the place `to`, counted from the beginning of its page, 1 to 31 bytes further in it than
// `from`?
inline bool lies_close_behind(const void* from, size_t to) {
  constexpr size_t kPage = 4096;
  constexpr size_t kZone = 31;  // bytes, of Zen 3; 15 of Zen 4
  const size_t distance = (to - reinterpret_cast<uintptr_t>(from)) % kPage;
  return distance > 0 && distance <= kZone;
}

}  // namespace weft
