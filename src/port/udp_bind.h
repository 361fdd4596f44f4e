// UDP sockets that are bound to an address that a program chose, or to a multicast group.
#pragma once

#include "base/result.h"
#include "port/address.h"
#include "port/fd.h"
#include "port/tcp_stream.h"

namespace weft::port {

// Port 0: the kernel's choice. The IPv6 wildcard means both families, unless `only_ipv6`. Without
// SO_REUSEADDR: the bind is the lock on the port (spec/addressing 2.2).
Result<Fd, SystemError> bind_udp(const Address& at, bool only_ipv6 = false);

// A socket that hears what is sent to `group`, and no other group, together with all others on this
// host that do the same (spec/wdp-ud 5.2). `interface`: of a group of IPv6 that does not leave its
// link.
Result<Fd, SystemError> bind_group(const Address& group, uint32_t interface);
// By one more interface, whose own address is `local`. 0, or an errno value.
int join_group(int fd, const Address& group, const Gid& local, uint32_t interface);

}  // namespace weft::port
