// Where the two sides live: on this machine's loopback address, or in two network namespaces with a
// pair of virtual Ethernet devices between them.
#pragma once

#include <string>

#include "port/fd.h"

namespace weft::bench {

struct Place {
  std::string address;         // IPv4
  port::Fd network_namespace;  // invalid: the one of this process
};

struct Network {
  std::string name;  // "loopback" or "veth"
  Place initiator;
  Place target;
};

Network loopback_network();

// Needs root and ip(8); throws Failure. The namespaces have no names and no files, so they are
// gone, and their devices with them, when the last process in them and this object are.
Network veth_network();

}  // namespace weft::bench
