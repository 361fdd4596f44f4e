// What the device asks the operating system: addresses, routes, the identity of the host.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/gid_table.h"

namespace weft::device {

// Metric of the best default route of each interface that has one.
using RouteMetrics = std::map<std::string, uint32_t, std::less<>>;

// From the text of /proc/net/route and /proc/net/ipv6_route. Lines that do not parse are passed
// over. Pure.
RouteMetrics default_routes_ipv4(std::string_view proc_net_route);
RouteMetrics default_routes_ipv6(std::string_view proc_net_ipv6_route);

// Every address of every interface of this network namespace, in the kernel's order. Asks netlink
// (getifaddrs(3)), and where that is forbidden ioctl(2) and /proc/net/if_inet6; when none of them
// tells of any, `complaint`, if not null, gets a sentence. Any thread.
std::vector<LocalAddress> local_addresses(std::string* complaint = nullptr);

// From the text of /proc/net/if_inet6: interfaces are not looked at. Lines that do not parse are
// passed over. Pure.
std::vector<LocalAddress> ipv6_addresses(std::string_view proc_net_if_inet6);

// What distinguishes this host from others.
struct HostFacts {
  std::string machine_id;    // of /etc/machine-id; empty when there is none
  std::vector<uint8_t> mac;  // of the first interface that has one, else empty
  std::string name;          // gethostname(2)
};
HostFacts host_facts();

// The adapter's GUID: a hash of machine-id, or of the MAC address where there is no valid
// machine-id, or of the host's name. Marked as locally administered, hence never 0. Pure.
uint64_t make_guid(const HostFacts& facts);

}  // namespace weft::device
