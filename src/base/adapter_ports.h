// Which ports adapters and multicast groups have, and how much their sockets hold.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// Multicast groups (spec/wdp-ud 5.1): below the ephemeral range, where members and adapter ports
// would refuse each other.
inline constexpr uint32_t kFirstMulticastPort = 24'576;
inline constexpr uint32_t kMulticastPorts = 8192;

// Of queue pairs (spec/addressing 2.2): never privileged, never of multicast, never the last one.
constexpr bool is_adapter_port(uint32_t port) {
  const bool of_multicast =
      port >= kFirstMulticastPort && port < kFirstMulticastPort + kMulticastPorts;
  return port >= 1024 && port < 65'535 && !of_multicast;
}
inline constexpr const char* kAdapterPorts = "1024..24575, 32768..65534";

// What a datagram socket asks for in each direction (design/17): on a fast link a burst that the
// program does not read at once fills it, and a Read has a quarter of it on its way (spec/wdp-uc
// 5.4).
inline constexpr size_t kDatagramBuffer = size_t{4} << 20;

}  // namespace weft
