// Addresses of sockets and sessions, and how they compare.
#pragma once

#include <memory>
#include <optional>

#include "sdp/rdma/fabric.h"

namespace weft::sdp {

// A socket's own name. Nothing for another family than IPv4 and IPv6.
std::optional<Address> name_of(int fd);
// That of the side of `session` that is here; the port is the adapter's.
Address own_address(const std::shared_ptr<Session>& session);
// It stands for all of the host's.
bool any_address(const Address& address);
// Where a socket of the name `own` connects to that connects to all of the host's addresses.
Address this_host(const Address& any, const std::optional<Address>& own);
// The same host's: an IPv6 socket that speaks IPv4 has such names as well.
bool same_address(const Address& a, const Address& b);
// The same place as a socket of this family names it.
Address in_family(const Address& address, sa_family_t family);

// Whether a socket of IPv6 leaves IPv4 to others (IPV6_V6ONLY).
bool is_one_family(int fd);
// Nobody listens there. Another worker of the same server often does already. With errno.
bool is_free(const Address& at, bool one_family);

}  // namespace weft::sdp
