// Files that this process writes under a name that somebody chose, maybe in a folder where other
// users make files, too.
#pragma once

#include <string>

#include "base/result.h"
#include "port/tcp_stream.h"

namespace weft::port {

// Opens `path` to write behind what it has, or makes it, for its owner alone. Only a regular file
// of this user's, under one name: what another user has left there, a link, a FIFO or a file of
// his, is neither followed nor written to. Errors: errno of open(2) (ELOOP: a link); EPERM: not
// such a file. No cancellation point.
Result<Fd, SystemError> append_to_own_file(const std::string& path);

}  // namespace weft::port
