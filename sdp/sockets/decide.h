// Which sockets may go by SDP: TCP sockets that the rules allow.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "sdp/rules/rules.h"

namespace weft::sdp {

// What the rules say of a TCP socket that is about to connect to `to`. Nothing for all other
// sockets, which are the kernel's.
std::optional<Use> use_to_connect(int fd, const sockaddr* to, socklen_t size);
// The same of one that listens.
std::optional<Use> use_to_listen(int fd);

}  // namespace weft::sdp
