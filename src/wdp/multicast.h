// Where a multicast group of InfiniBand is on an IP network (spec/wdp-ud 5.1). Every member
// computes the same from the MGID alone.
#pragma once

#include <cstdint>

#include "base/gid.h"
#include "wdp/endpoint.h"

namespace weft::wdp {

// IP group and UDP port of an MGID. `ipv4`: the member's own GID is one of IPv4.
Endpoint multicast_endpoint(const Gid& mgid, bool ipv4);

// A multicast address of IP, in either form.
bool is_multicast(const Gid& gid);

}  // namespace weft::wdp
