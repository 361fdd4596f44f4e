// Addresses as `weft stat` and the log have them.
#pragma once

#include <string>

#include "sdp/rdma/fabric.h"
#include "sdp/stat/layout.h"

namespace weft::sdp {

// Zeros for another family than IPv4 and IPv6.
StatName shown_name(const Address& address);
// Of a socket: its own name.
StatName shown_name_of(int fd);
// "192.0.2.1:5001", "[2001:db8::1]:5001".
std::string to_string(const Address& address);

}  // namespace weft::sdp
