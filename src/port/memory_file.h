// Files in memory that have no name in any folder, to be shared with processes of the same user by
// /proc.
#pragma once

#include <cstdint>

#include "port/fd.h"

namespace weft::port {

// Empty, for its owner alone, and ready to be sealed. `name` is what /proc shows. Not valid: errno
// says why.
Fd memory_file(const char* name);

// A file that grows beyond this (RLIMIT_FSIZE) ends the process by SIGXFSZ.
uint64_t largest_file();

}  // namespace weft::port
