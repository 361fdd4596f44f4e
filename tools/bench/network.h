// Where the two sides live: on this machine's loopback address, or in two network namespaces with a
// pair of virtual Ethernet devices between them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/relay.h"
#include "port/fd.h"

namespace weft::bench {

struct Place {
  std::string address;         // IPv4
  port::Fd network_namespace;  // invalid: the one of this process
};

// What the network devices do for the CPU: checksums, and large packets that are cut up late and
// put together early (TSO, GSO, GRO).
enum class Offloads : uint8_t { unchanged, on, off };
const char* name_of(Offloads offloads);

struct Network {
  std::string name;  // "loopback", "veth" or "relay"
  Place initiator;
  Place target;
  bool lossy = false;  // packets can be lost on it

  std::unique_ptr<Relay> relay;  // with one a link may have any shape

  // From now on, either way. Throws kit::Failure.
  void shape(double loss, double delay_ms, double mbps) const;
};

Network loopback_network();

// Needs root and ip(8); throws kit::Failure. The namespaces have no names and no files, so they are
// gone, and their devices with them, when the last process in them and this object are.
// `mtu`: 0 for that of the devices. To choose `offloads` needs ethtool(8), too.
Network veth_network(unsigned mtu, Offloads offloads = Offloads::unchanged);
// Two namespaces with a relay between them. Needs root, ip(8) and /dev/net/tun.
Network relayed_network(unsigned mtu);
// Such a network that can lose packets; needs nft(8), too. Each packet stands for itself: trains
// are cut up before they meet their fate.
Network lossy_network(unsigned mtu);

}  // namespace weft::bench
