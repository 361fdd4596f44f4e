// Where datagrams of an address vector go on this network (spec/wdp-ud 3.3, spec/addressing 1).
#pragma once

#include <optional>

#include "verbs/context.h"
#include "wdp/ud_consumer.h"

namespace weft::verbs {

// Value type.
struct AddressHandle {
  wdp::Path path;  // its port is that of the queue pair that a request names
  // The port that a datagram was seen to come from, where a NAT has changed it; else 0.
  uint16_t observed_port = 0;
  uint32_t interface = 0;  // of path.from
  // UDP payload of a UD message: header and as much as the MTU of the link has room for in
  // InfiniBand's sizes, on the host's own addresses too, so that what a program finds out there
  // holds for others; with the option ud_big all that UDP has.
  size_t room = 0;

  bool of_one_family() const { return path.from.is_ipv4() == path.to.address.is_ipv4(); }
  wdp::Path to(Qpn qpn) const {
    wdp::Path p = path;
    p.to.port = observed_port != 0 ? observed_port : port_of(qpn);
    return p;
  }
};

// The address of this host that an address vector leads from: nullptr when it has none. The
// context's own.
const device::GidEntry* source_of(const Context& context, const AddressVector& vector);

// Nothing when it leads nowhere. Whether the families of its ends agree is for the caller to see:
// no datagram leads from IPv4 to IPv6.
std::optional<AddressHandle> resolve(const Context& context, const AddressVector& vector);

// An address of this host.
bool is_own(const Context& context, const Gid& address);
// Is it from one of them to another?
bool stays_on_host(const Context& context, const wdp::Path& path);
// UDP payload that fits the way: that of the interface, or of the loopback for the host's own
// addresses.
size_t datagram_room(const Context& context, const wdp::Path& path);
wdp::PathRoom room_of(const Context& context, const wdp::Path& path);

}  // namespace weft::verbs
