// Whether another host can be reached: name, route, source address and, where a port is given, a
// TCP connection. No ping: weft needs no ICMP, and many networks drop it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/finding.h"

namespace weft::tools {

struct PeerRequest {
  std::string host;                          // a name or an address, "fe80::1%eth0" too
  std::optional<uint16_t> port;              // where a program of the peer listens
  std::chrono::milliseconds patience{3000};  // for the TCP connection
};

// Sends nothing but a name query and, where a port is given, one TCP connection attempt to each
// address.
std::vector<Finding> check_peer(const PeerRequest& request);

}  // namespace weft::tools
