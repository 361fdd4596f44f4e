// From which size on the peer should pull a payload, instead of both sides copying it through the
// ring (docs/design/34).
//
// A pull is one copy, by the reader alone. Through the ring there are two, and both processors work
// at a time. Which is faster depends on how fast the kernel copies between processes: on one
// machine it moves 26 GB/s of cached memory, on another 11.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "config/options.h"

namespace weft::shared {

// Bytes; kNeverPull: nothing is to be pulled. Where the options leave it to this machine it is
// measured at the first call, which takes some 50 us, and is the same ever after. Any thread.
inline constexpr size_t kNeverPull = SIZE_MAX;
size_t pull_from(const config::Options& options);

// The same for a kernel that takes so long for a pull of kProbe bytes. Pure.
inline constexpr size_t kProbe = 64 * 1024;
size_t pull_from(Duration pull);

}  // namespace weft::shared
