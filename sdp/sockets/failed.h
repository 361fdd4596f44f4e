// What a call of the program's comes to that fails.
#pragma once

#include <sys/types.h>

#include <cerrno>

namespace weft::sdp {

inline ssize_t failed(int error) {
  errno = error;
  return -1;
}

}  // namespace weft::sdp
