// The GID table: which addresses of this host the port shows, and in which order (spec/abi 2.4,
// spec/addressing 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/gid.h"

namespace weft::device {

// One address of one interface, as the system reports it.
struct LocalAddress {
  static constexpr uint32_t kNoDefaultRoute = UINT32_MAX;

  Gid gid;
  std::string interface;
  uint32_t ifindex = 0;
  uint32_t scope_id = 0;  // of link-local IPv6, else 0
  uint32_t link_mtu = 1500;
  bool up = true;
  bool running = true;  // has a carrier
  // Metric of the interface's default route in the family of this address.
  uint32_t default_route_metric = kNoDefaultRoute;
};

// One line of the table; its index is the sgid_index of verbs.
struct GidEntry {
  Gid gid;
  std::string interface;
  uint32_t ifindex = 0;
  uint32_t scope_id = 0;
  uint32_t link_mtu = 1500;  // bytes of an IP packet
};

// 127.0.0.0/8 or ::1. By address and not by interface: hosts that route to themselves keep public
// addresses on lo.
bool is_loopback(const Gid& gid);
// 127.0.0.1 or ::1, by which programs mean their host, whatever its other addresses are.
bool is_localhost(const Gid& gid);

// A sgid_index is a byte.
inline constexpr size_t kMostGids = 256;

// The table that `addresses` make. IPv4 comes before IPv6, routable before link-local, then what
// has the best default route, then what has a carrier, then the system's order. Interfaces that are
// down are left out, loopback too, unless there is nothing else. `first` is the option ip: an
// address ("192.0.2.1", "fe80::1%eth0") or an interface name, whose best address becomes index 0,
// loopback or not. When it fits no address the table is as if it were empty and `complaint`, if not
// null, gets a sentence. What goes beyond kMostGids is left out. Pure.
std::vector<GidEntry> make_gid_table(std::span<const LocalAddress> addresses,
                                     std::string_view first, std::string* complaint);

}  // namespace weft::device
