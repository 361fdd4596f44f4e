// The error queue of a connection, which has reports of MSG_ZEROCOPY alone.
#pragma once

#include <sys/socket.h>

#include "sdp/sockets/stream.h"

namespace weft::sdp {

// What recvmsg(2) with MSG_ERRQUEUE comes to on `fd`, a descriptor of `stream`.
ssize_t receive_report(Stream& stream, int fd, msghdr* message);

}  // namespace weft::sdp
