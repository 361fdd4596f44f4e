// What the kernel knows of the way to a peer. A connection's shadow is not connected, or to this
// host only.
#pragma once

#include <optional>

#include "sdp/rdma/fabric.h"

namespace weft::sdp {

// IP_MTU, IPV6_MTU and TCP_MAXSEG, as of a TCP connection with this peer. Nothing for all other
// options, and where the kernel does not know.
std::optional<int> option_of_path(int level, int name, const Address& peer);

}  // namespace weft::sdp
