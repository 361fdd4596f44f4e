// What the kernel's routing says about addresses. Nothing is sent: a datagram socket is connected
// and asked for its name. No cancellation point.
#pragma once

#include "base/result.h"
#include "port/address.h"
#include "port/tcp_stream.h"

namespace weft::port {

// The local address from which packets to `to` leave, with port 0. `from` narrows the choice when
// it is a specific address; it may be an empty address. Errors: errno of bind(2) (EADDRNOTAVAIL:
// `from` is not of this host) or connect(2) (ENETUNREACH, EHOSTUNREACH, EACCES for a broadcast
// address, EINVAL for a link-local address without scope).
Result<Address, SystemError> source_towards(const Address& to, const Address& from);

// Is `at` an address of this host? 0, or errno of bind(2). Its port is not looked at.
int check_local(const Address& at);

}  // namespace weft::port
