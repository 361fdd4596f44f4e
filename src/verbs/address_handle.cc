#include "verbs/address_handle.h"

#include <algorithm>

#include "wdp/multicast.h"
#include "wire/wdp_common.h"

namespace weft::verbs {
namespace {

constexpr size_t kIpv4Headers = 20 + 8;
constexpr size_t kIpv6Headers = 40 + 8;
constexpr size_t kLoopbackMtu = 65'536;

}  // namespace

std::optional<AddressHandle> resolve(const Context& context, const AddressVector& v) {
  const auto destination = context.destination(v);
  const device::GidEntry* source = context.source(v.global ? v.sgid_index : 0);
  if (!destination || source == nullptr) return {};
  // As adapters of Ethernet do: programs copy the 1 of examples, which would end at the first
  // router.
  const bool limited = v.global && v.hop_limit > 1;
  // wire.md 10: a group has a port of its own, and whoever sends to it needs no other number.
  if (wdp::is_multicast(*destination)) {
    const wdp::Endpoint group = wdp::multicast_endpoint(*destination, source->gid.is_ipv4());
    return AddressHandle{.path = {.to = {.address = group.address},
                                  .from = source->gid,
                                  .traffic_class = v.traffic_class,
                                  .hop_limit = limited ? v.hop_limit : uint8_t{0}},
                         .observed_port = group.port,
                         .interface = source->ifindex};
  }
  return AddressHandle{.path = {.to = {.address = *destination},
                                .from = source->gid,
                                .traffic_class = v.global ? v.traffic_class : uint8_t{0},
                                .hop_limit = limited ? v.hop_limit : uint8_t{0}},
                       .interface = source->scope_id != 0 ? source->scope_id : source->ifindex};
}

bool is_own(const Context& context, const Gid& address) {
  return context.device().find(address) != nullptr || device::is_loopback(address);
}

bool stays_on_host(const Context& context, const wdp::Path& path) {
  return path.to.address == path.from || is_own(context, path.to.address);
}

size_t datagram_room(const Context& context, const wdp::Path& path) {
  const device::GidEntry* source = context.device().find(path.from);
  size_t mtu = source != nullptr ? source->link_mtu : 1500;
  if (stays_on_host(context, path)) mtu = std::max(mtu, kLoopbackMtu);
  const size_t headers = path.to.address.is_ipv4() ? kIpv4Headers : kIpv6Headers;
  return std::min(mtu > headers ? mtu - headers : 0, wire::kMaxUdpPayload);
}

}  // namespace weft::verbs
