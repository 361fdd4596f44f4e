#include "device/device.h"

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "device/system.h"

namespace weft::device {
namespace {

// LIDs of ports; those above are multicast, and programs that know InfiniBand refuse them.
constexpr uint16_t kMaxUnicastLid = 0xbfff;

std::optional<uint32_t> first_ipv4(std::span<const GidEntry> gids) {
  const auto found =
      std::find_if(gids.begin(), gids.end(), [](const auto& e) { return e.gid.is_ipv4(); });
  if (found == gids.end()) return std::nullopt;
  return found->gid.ipv4();
}

// One number has to serve every GID, so a datagram of this size must fit the smallest link; unless
// the user chose a link by the option ip, as one does for a network with jumbo frames beside
// another.
Mtu active_mtu(std::span<const GidEntry> gids, bool first_was_chosen) {
  Mtu mtu = Mtu::b4096;
  for (const GidEntry& e : first_was_chosen ? gids.first(1) : gids) {
    mtu = std::min(mtu, ud_mtu(e.link_mtu, e.gid.is_ipv4()));
  }
  return mtu;
}

void take_identity(config::Identity identity, Device& device) {
  switch (identity) {
    case config::Identity::ib:
      break;
    case config::Identity::iwarp:
      device.attributes.node_type = NodeType::rnic;
      device.attributes.transport = Transport::iwarp;
      break;
    case config::Identity::ib_lid:
      device.port.link_layer = LinkLayer::infiniband;
      device.port.capabilities &= ~kCapabilityIpBasedGids;  // says RoCE
      device.port.sm_lid = 1;
      if (device.complaint.empty() && (device.port.lid == 0 || device.port.lid > kMaxUnicastLid)) {
        device.complaint = "identity=ib-lid needs a LID of 1..49151, and the port's is " +
                           std::to_string(device.port.lid) +
                           "; choose an IPv4 address x.y.a.b with a < 192 by the option ip";
      }
      break;
  }
}

}  // namespace

Mtu ud_mtu(uint32_t link_mtu, bool ipv4) {
  constexpr uint32_t kUdp = 8, kWdp = 32;
  const uint32_t headers = (ipv4 ? 20 : 40) + kUdp + kWdp;
  Mtu mtu = Mtu::b256;
  for (const Mtu larger : {Mtu::b512, Mtu::b1024, Mtu::b2048, Mtu::b4096}) {
    if (bytes_of(larger) + headers <= link_mtu) mtu = larger;
  }
  return mtu;
}

const GidEntry* Device::find(const Gid& gid) const {
  const auto found =
      std::find_if(gids.begin(), gids.end(), [&](const auto& e) { return e.gid == gid; });
  return found == gids.end() ? nullptr : &*found;
}

std::optional<Gid> Device::resolve_lid(uint16_t lid) const {
  const auto own = first_ipv4(gids);
  if (lid == 0 || !own) return std::nullopt;
  if (lid == port.lid) return Gid::from_ipv4(*own);
  return Gid::from_ipv4((*own & 0xffff0000U) | lid);
}

Device make_device(const config::Options& options, std::span<const LocalAddress> addresses,
                   uint64_t guid) {
  Device device;
  device.attributes.firmware = WEFT_VERSION;
  device.attributes.node_guid = device.attributes.system_image_guid = guid;
  device.gids = make_gid_table(addresses, options.ip, &device.complaint);
  const bool chosen = !options.ip.empty() && device.complaint.empty();

  PortAttributes& port = device.port;
  port.gid_table_length = static_cast<uint32_t>(device.gids.size());
  port.capabilities = kCapabilityCm | kCapabilityIpBasedGids;
  if (device.gids.empty()) {
    port.state = PortState::down;
    port.physical_state = PhysicalState::disabled;
  } else {
    port.active_mtu = active_mtu(device.gids, chosen);
  }
  port.lid =
      options.lid != 0 ? options.lid : static_cast<uint16_t>(first_ipv4(device.gids).value_or(0));
  take_identity(options.identity, device);
  return device;
}

Device device_of_host(const config::Options& options) {
  std::string untold;
  Device device = make_device(options, local_addresses(&untold), make_guid(host_facts()));
  if (device.gids.empty() && !untold.empty()) device.complaint = std::move(untold);
  return device;
}

Device query_device(const config::Options& options) {
  Device device = device_of_host(options);
  // Programs open the device many times; the user reads the sentence once.
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  if (!device.complaint.empty() && !said.test_and_set()) {
    WEFT_LOG(warn, "%s", device.complaint.c_str());
  }
  return device;
}

}  // namespace weft::device
