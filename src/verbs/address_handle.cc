#include "verbs/address_handle.h"

#include <algorithm>

#include "config/options.h"
#include "wdp/multicast.h"
#include "wire/ip_headers.h"
#include "wire/wdp_common.h"
#include "wire/wdp_ud.h"

namespace weft::verbs {
namespace {

constexpr size_t kLoopbackMtu = 65'536;
constexpr size_t kEthernetMtu = 1500;  // of an interface that is not known

// UDP payload to this address where IP packets may have `mtu` bytes.
size_t payload(size_t mtu, const Gid& to) {
  const size_t headers = wire::udp_ip_headers(to.is_ipv4());
  return std::min(mtu > headers ? mtu - headers : 0, wire::kMaxUdpPayload);
}

// UDP payload of a UD message. An adapter refuses what is longer than its MTU, though the link may
// have room for some more. spec/wdp-ud 4: in big mode IP cuts up what is larger than the link.
size_t room(uint32_t mtu, const Gid& to) {
  if (config::options().ud_big) return wire::kMaxUdpPayload;
  return wire::WdpUd::kSize + device::bytes_of(device::ud_mtu(mtu, to.is_ipv4()));
}

// InfiniBand's static rate (IBTA 12.1, PathRecord:Rate; ibv_rate), in Gb/s. 0 is the port's own.
double gbps_of(uint8_t static_rate) {
  constexpr double kRates[] = {0,   0,   2.5, 10,  30,  5,   20, 40, 60,  80,  120, 14,  56,
                               112, 168, 25,  100, 200, 300, 28, 50, 400, 600, 800, 1200};
  return static_rate < std::size(kRates) ? kRates[static_rate] : 0;
}

}  // namespace

// A LID is part of an IPv4 address, whichever GID is the first.
const device::GidEntry* source_of(const Context& context, const AddressVector& v) {
  if (v.global) return context.source(v.sgid_index);
  for (const device::GidEntry& e : context.device().gids) {
    if (e.gid.is_ipv4()) return &e;
  }
  return nullptr;
}

std::optional<AddressHandle> resolve(const Context& context, const AddressVector& v) {
  const auto destination = context.destination(v);
  const device::GidEntry* source = source_of(context, v);
  if (!destination || source == nullptr) return {};
  // As adapters of Ethernet do: programs copy the 1 of examples, which would end at the first
  // router.
  const bool limited = v.global && v.hop_limit > 1;
  const double rate = gbps_of(v.static_rate);
  // spec/wdp-ud 5.1: a group has a port of its own, and its senders need no other number.
  if (wdp::is_multicast(*destination)) {
    const wdp::Endpoint group = wdp::multicast_endpoint(*destination, source->gid.is_ipv4());
    return AddressHandle{.path = {.to = {.address = group.address},
                                  .from = source->gid,
                                  .traffic_class = v.traffic_class,
                                  .hop_limit = limited ? v.hop_limit : uint8_t{0},
                                  .rate = rate},
                         .observed_port = group.port,
                         .interface = source->ifindex,
                         .room = room(source->link_mtu, group.address)};
  }
  return AddressHandle{.path = {.to = {.address = *destination},
                                .from = source->gid,
                                .traffic_class = v.global ? v.traffic_class : uint8_t{0},
                                .hop_limit = limited ? v.hop_limit : uint8_t{0},
                                .rate = rate},
                       .interface = source->scope_id != 0 ? source->scope_id : source->ifindex,
                       .room = room(source->link_mtu, *destination)};
}

bool is_own(const Context& context, const Gid& address) {
  return context.device().find(address) != nullptr || device::is_loopback(address);
}

bool stays_on_host(const Context& context, const wdp::Path& path) {
  return path.to.address == path.from || is_own(context, path.to.address);
}

size_t datagram_room(const Context& context, const wdp::Path& path) {
  const device::GidEntry* source = context.device().find(path.from);
  size_t mtu = source != nullptr ? source->link_mtu : kEthernetMtu;
  if (stays_on_host(context, path)) mtu = std::max(mtu, kLoopbackMtu);
  return payload(mtu, path.to.address);
}

wdp::PathRoom room_of(const Context& context, const wdp::Path& path) {
  return {.most = datagram_room(context, path), .certain = stays_on_host(context, path)};
}

}  // namespace weft::verbs
