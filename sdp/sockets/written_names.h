// The names of a connection, written into the kernel's name of the program's end of the mirror.
// Whoever has the descriptor can read them there: a child, the program that follows by exec, a
// process that it was passed to.
#pragma once

#include <optional>

#include "sdp/rdma/fabric.h"

namespace weft::sdp {

struct WrittenNames {
  Address own{};
  Address peer{};
};

// `fd` is an end of a socket pair that has no name yet. Does nothing for other sockets. errno
// stays.
void write_names(int fd, const WrittenNames& names);
// Nothing if `fd` is no such end. errno stays.
std::optional<WrittenNames> written_names(int fd);

}  // namespace weft::sdp
