#include "wdp/multicast.h"

#include <span>

#include "base/adapter_ports.h"
#include "base/crc32c.h"

namespace weft::wdp {
namespace {

// 239.192.0.0/14, the organization-local scope (RFC 2365).
constexpr uint32_t kHashed = 0xefc00000;
constexpr uint32_t kHashedGroups = 1U << 18;

uint32_t crc_of(const Gid& g) {
  return crc32c(std::as_bytes(std::span{g.raw}));
}

constexpr bool is_ipv4_group(uint32_t address) {
  return address >> 28 == 0xe;
}

// ::ffff:g, or ff..:ffff:g as RoCE writes it.
bool holds_ipv4_group(const Gid& mgid) {
  Gid mapped = mgid;
  if (mapped.raw[0] == 0xff) mapped.raw[0] = mapped.raw[1] = 0;
  return mapped.is_ipv4() && is_ipv4_group(mapped.ipv4());
}

Gid group_of(const Gid& mgid, bool ipv4) {
  if (holds_ipv4_group(mgid)) return Gid::from_ipv4(mgid.ipv4());
  if (ipv4) return Gid::from_ipv4(kHashed + crc_of(mgid) % kHashedGroups);
  Gid group = mgid;
  // perftest's default MGID has the scope of the interface, which never leaves the host.
  if (group.raw[0] == 0xff && (group.raw[1] & 0x0f) == 1) ++group.raw[1];
  return group;
}

}  // namespace

Endpoint multicast_endpoint(const Gid& mgid, bool ipv4) {
  const Gid group = group_of(mgid, ipv4);
  return {group, static_cast<uint16_t>(kFirstMulticastPort + crc_of(group) % kMulticastPorts)};
}

bool is_multicast(const Gid& gid) {
  return gid.raw[0] == 0xff || (gid.is_ipv4() && is_ipv4_group(gid.ipv4()));
}

}  // namespace weft::wdp
