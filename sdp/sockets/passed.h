// Messages between processes of this host, with descriptors (SCM_RIGHTS).
#pragma once

#include <sys/types.h>

#include <array>

#include "base/bytes.h"
#include "sdp/loop/file.h"

namespace weft::sdp {

inline constexpr size_t kMostPassed = 2;

// `files`: those that are negative, and all behind them, are none.
bool pass(int socket, Bytes message, std::array<int, kMostPassed> files);
// How long the message is; 0 at the end, negative with errno.
ssize_t take_passed(int socket, MutableBytes message, std::array<File, kMostPassed>& files);

}  // namespace weft::sdp
