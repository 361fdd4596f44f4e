// The one device, weft0, and its one port: what it says it is, what it can do, and by which
// addresses it is reached (spec/abi 2). The structs are weft's own; abi/
// translates them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/gid.h"
#include "config/options.h"
#include "device/gid_table.h"

namespace weft::device {

inline constexpr std::string_view kDeviceName = "weft0";
inline constexpr uint8_t kPort = 1;

// Limits that verbs enforces: one above is refused (spec/abi 2.6).
inline constexpr uint32_t kMaxQpWr = 16'384;
inline constexpr uint32_t kMaxSge = 30;
inline constexpr uint32_t kMaxCqe = 4'194'304;
inline constexpr uint32_t kMaxInline = 1024;  // bytes
inline constexpr uint32_t kMaxReads = 16;  // outstanding RDMA Reads and Atomics of a QP, each way
inline constexpr uint32_t kMaxQp = 65'536;
inline constexpr uint32_t kMaxCq = 65'536;
inline constexpr uint32_t kMaxPd = 65'536;
// Shared with memory windows. An STag has 24 bits of index, and half of them are for reads
// (verbs/memory_table.h).
inline constexpr uint32_t kMaxMr = (1U << 23) - 1;
inline constexpr uint32_t kMaxAh = 1U << 20;
inline constexpr uint32_t kMaxSrq = 65'536;
inline constexpr uint32_t kMaxMessage = 1U << 31;  // bytes
// Promised, and refused to nobody: a group is a socket, and descriptors end before.
inline constexpr uint32_t kMaxMulticastGroups = 4096;
inline constexpr uint32_t kMaxQpPerMulticastGroup = 254;
inline constexpr uint32_t kCompletionVectors = 1;
inline constexpr uint16_t kPkey = 0xffff;  // the table's only entry

// The values of these enums are those of InfiniBand and of verbs.
enum class NodeType : uint8_t { channel_adapter = 1, rnic = 4 };
enum class Transport : uint8_t { infiniband = 0, iwarp = 1 };
enum class LinkLayer : uint8_t { infiniband = 1, ethernet = 2 };
enum class PortState : uint8_t { down = 1, active = 4 };
enum class PhysicalState : uint8_t { disabled = 3, link_up = 5 };
enum class AtomicCapability : uint8_t { none = 0, adapter = 1 };
enum class Mtu : uint8_t { b256 = 1, b512 = 2, b1024 = 3, b2048 = 4, b4096 = 5 };

constexpr uint32_t bytes_of(Mtu mtu) {
  return 128U << static_cast<uint8_t>(mtu);
}

struct DeviceAttributes {
  NodeType node_type = NodeType::channel_adapter;
  Transport transport = Transport::infiniband;
  std::string_view firmware;  // weft's version
  uint64_t node_guid = 0;     // host byte order
  uint64_t system_image_guid = 0;
  // Nobody's: perftest, UCX and libfabric change their ways for the vendors that they know
  // (spec/abi 2.2).
  uint32_t vendor_id = 0x776674;  // "wft"
  uint32_t vendor_part_id = 1;
  uint32_t hardware_version = 1;
  uint64_t max_mr_size = UINT64_MAX;
  uint64_t page_sizes = 0xfffff000;  // one bit for each
  uint32_t max_qp = kMaxQp;
  uint32_t max_qp_wr = kMaxQpWr;
  uint32_t max_sge = kMaxSge;
  uint32_t max_sge_rd = kMaxSge;
  uint32_t max_cq = kMaxCq;
  uint32_t max_cqe = kMaxCqe;
  uint32_t max_mr = kMaxMr;
  uint32_t max_mw = kMaxMr;
  uint32_t max_pd = kMaxPd;
  uint32_t max_qp_rd_atom = kMaxReads;
  uint32_t max_qp_init_rd_atom = kMaxReads;
  uint32_t max_res_rd_atom = kMaxReads * kMaxQp;
  AtomicCapability atomic = AtomicCapability::adapter;
  uint32_t max_mcast_grp = kMaxMulticastGroups;
  uint32_t max_mcast_qp_attach = kMaxQpPerMulticastGroup;
  uint32_t max_total_mcast_qp_attach = kMaxMulticastGroups * kMaxQpPerMulticastGroup;
  uint32_t max_ah = kMaxAh;
  uint32_t max_srq = kMaxSrq;
  uint32_t max_srq_wr = kMaxQpWr;
  uint32_t max_srq_sge = kMaxSge;
  uint16_t max_pkeys = 1;
  uint8_t local_ack_delay = 15;  // 4.096 us * 2^15
  uint8_t ports = 1;
};

struct PortAttributes {
  PortState state = PortState::active;
  PhysicalState physical_state = PhysicalState::link_up;
  LinkLayer link_layer = LinkLayer::ethernet;
  Mtu max_mtu = Mtu::b4096;
  Mtu active_mtu = Mtu::b1024;
  uint32_t gid_table_length = 0;
  uint32_t capabilities = 0;  // of kCapability...
  uint32_t max_message = kMaxMessage;
  uint16_t pkey_table_length = 1;
  uint16_t lid = 0;
  uint16_t sm_lid = 0;
  uint8_t lmc = 0;
  uint8_t max_vl = 1;
  // Middleware divides by it, so it is no claim and must not be 0: see kMegabits.
  uint8_t active_width = 2;
  uint8_t active_speed = 32;
};
inline constexpr int kMegabits = 100'000;  // 4 lanes of 25 Gbit/s
inline constexpr uint32_t kCapabilityCm = 1U << 16;
inline constexpr uint32_t kCapabilityIpBasedGids = 1U << 26;

// The largest UD payload of a link, as an IB MTU: what is left of `link_mtu` after the IP, UDP and
// WDP headers (spec/wdp-ud 4). Never below 256.
Mtu ud_mtu(uint32_t link_mtu, bool ipv4);

// A picture of the device at one moment; addresses that come or go later do not change it, and no
// event tells of them (docs/design/05-where-weft-differs.md). A value type.
struct Device {
  DeviceAttributes attributes;
  PortAttributes port;
  std::vector<GidEntry> gids;  // index = sgid_index
  std::string complaint;       // for the user, or empty

  // The table's entry for an address, or nullptr.
  const GidEntry* find(const Gid& gid) const;
  // The address behind a LID (spec/abi 2.5): the upper half of the first IPv4 address with `lid` as
  // its lower half; the port's own LID is that address itself. Nothing for LID 0 or without an IPv4
  // address.
  std::optional<Gid> resolve_lid(uint16_t lid) const;
};

// Pure.
Device make_device(const config::Options& options, std::span<const LocalAddress> addresses,
                   uint64_t guid);

// The device of this host and network namespace now. Any thread.
Device device_of_host(const config::Options& options);
// The same, and logs the complaint, if there is one: once.
Device query_device(const config::Options& options);

}  // namespace weft::device
