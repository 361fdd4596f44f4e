// Which socket of the kernel's answers for a connection.
#pragma once

#include "sdp/loop/file.h"

namespace weft::sdp {

struct InPlace {
  File made;    // where this process has no shadow
  int fd = -1;  // -1: none is asked
  bool is_connection() const { return fd >= 0; }
};
// The shadow of `fd`, or a new TCP socket where the connection came from another process. errno
// stays.
InPlace in_place_of(int fd);

}  // namespace weft::sdp
