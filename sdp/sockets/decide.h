// Which sockets may go by SDP: TCP sockets that the rules allow.
#pragma once

#include <sys/socket.h>

#include "sdp/rules/rules.h"

namespace weft::sdp {

// What the rules say of a TCP socket that is about to connect to `to`; TCP for all other sockets.
Use use_to_connect(int fd, const sockaddr* to, socklen_t size);
// Whether a listener may hear SDP.
bool may_listen(int fd);

}  // namespace weft::sdp
