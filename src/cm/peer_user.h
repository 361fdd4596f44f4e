// Whether a caller on this host is the peer that it says it is. Which queue pair waits for which is
// no secret between the users of a host, so an address and two numbers prove nothing there; the
// kernel, however, knows whose each socket is.
#pragma once

#include "base/types.h"
#include "port/tcp_stream.h"
#include "verbs/context.h"

namespace weft::cm {

// May the process at the other end of `tcp` speak for queue pair `peer`? On another host: yes, for
// nobody here can tell. On this one: where the socket belongs to this process's user, to root, or
// to the user whose is the port that is in the number (spec/addressing 2.2: that port is bound as
// long as the process lives, and by nobody else). A socket that no process holds speaks for nobody.
// Where the kernel does not tell: yes, and a sentence for the user. Engine holder.
bool speaks_for(const verbs::Context& context, const port::TcpStream& tcp, Qpn peer);

}  // namespace weft::cm
