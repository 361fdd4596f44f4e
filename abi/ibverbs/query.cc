// What the device and its port say about themselves.
#include <algorithm>
#include <cstring>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/objects.h"
#include "abi/ibverbs/private_nodes.h"
#include "abi/ibverbs/query.h"
#include "device/device.h"

namespace weft::abi {
namespace {

constexpr unsigned kCapabilities = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
                                   IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
                                   IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;

constexpr bool same(device::Mtu a, ibv_mtu b) {
  return static_cast<int>(a) == b;
}
static_assert(same(device::Mtu::b256, IBV_MTU_256) && same(device::Mtu::b4096, IBV_MTU_4096));
static_assert(static_cast<int>(device::PortState::active) == IBV_PORT_ACTIVE &&
              static_cast<int>(device::PortState::down) == IBV_PORT_DOWN);
static_assert(static_cast<int>(device::LinkLayer::ethernet) == IBV_LINK_LAYER_ETHERNET &&
              static_cast<int>(device::LinkLayer::infiniband) == IBV_LINK_LAYER_INFINIBAND);
static_assert(static_cast<int>(device::AtomicCapability::adapter) == IBV_ATOMIC_HCA);
static_assert(static_cast<int>(device::NodeType::channel_adapter) == IBV_NODE_CA &&
              static_cast<int>(device::NodeType::rnic) == IBV_NODE_RNIC);
static_assert(static_cast<int>(device::Transport::infiniband) == IBV_TRANSPORT_IB &&
              static_cast<int>(device::Transport::iwarp) == IBV_TRANSPORT_IWARP);
static_assert(device::kCapabilityCm == IBV_PORT_CM_SUP &&
              device::kCapabilityIpBasedGids == IBV_PORT_IP_BASED_GIDS);

ibv_device_attr attributes_of(const device::Device& device) {
  const device::DeviceAttributes& a = device.attributes;
  const auto number = [](uint32_t v) { return static_cast<int>(v); };
  ibv_device_attr out{};
  std::copy_n(a.firmware.data(), std::min(a.firmware.size(), sizeof out.fw_ver - 1), out.fw_ver);
  out.node_guid = htobe64(a.node_guid);
  out.sys_image_guid = htobe64(a.system_image_guid);
  out.max_mr_size = a.max_mr_size;
  out.page_size_cap = a.page_sizes;
  out.vendor_id = a.vendor_id;
  out.vendor_part_id = a.vendor_part_id;
  out.hw_ver = a.hardware_version;
  out.max_qp = number(a.max_qp);
  out.max_qp_wr = number(a.max_qp_wr);
  out.device_cap_flags = kCapabilities;
  out.max_sge = number(a.max_sge);
  out.max_sge_rd = number(a.max_sge_rd);
  out.max_cq = number(a.max_cq);
  out.max_cqe = number(a.max_cqe);
  out.max_mr = number(a.max_mr);
  out.max_pd = number(a.max_pd);
  out.max_qp_rd_atom = number(a.max_qp_rd_atom);
  out.max_res_rd_atom = number(a.max_res_rd_atom);
  out.max_qp_init_rd_atom = number(a.max_qp_init_rd_atom);
  out.atomic_cap = static_cast<ibv_atomic_cap>(a.atomic);
  out.max_mw = number(a.max_mw);
  out.max_mcast_grp = number(a.max_mcast_grp);
  out.max_mcast_qp_attach = number(a.max_mcast_qp_attach);
  out.max_total_mcast_qp_attach = number(a.max_total_mcast_qp_attach);
  out.max_ah = number(a.max_ah);
  out.max_srq = number(a.max_srq);
  out.max_srq_wr = number(a.max_srq_wr);
  out.max_srq_sge = number(a.max_srq_sge);
  out.max_pkeys = a.max_pkeys;
  out.local_ca_ack_delay = a.local_ack_delay;
  out.phys_port_cnt = a.ports;
  return out;
}

ibv_port_attr port_of(const device::Device& device) {
  const device::PortAttributes& p = device.port;
  ibv_port_attr out{};
  out.state = static_cast<ibv_port_state>(p.state);
  out.max_mtu = static_cast<ibv_mtu>(p.max_mtu);
  out.active_mtu = static_cast<ibv_mtu>(p.active_mtu);
  out.gid_tbl_len = static_cast<int>(p.gid_table_length);
  out.port_cap_flags = p.capabilities;
  out.max_msg_sz = p.max_message;
  out.pkey_tbl_len = p.pkey_table_length;
  out.lid = p.lid;
  out.sm_lid = p.sm_lid;
  out.lmc = p.lmc;
  out.max_vl_num = p.max_vl;
  out.active_width = p.active_width;
  out.active_speed = p.active_speed;
  out.phys_state = static_cast<uint8_t>(p.physical_state);
  out.link_layer = static_cast<uint8_t>(p.link_layer);
  // As the kernel has it for RoCE.
  if (gid_type(device) == IBV_GID_TYPE_ROCE_V2) out.flags = IBV_QPF_GRH_REQUIRED;
  return out;
}

ibv_gid_entry gid_entry(const device::Device& device, uint32_t index) {
  const device::GidEntry& e = device.gids[index];
  ibv_gid_entry out{};
  std::memcpy(out.gid.raw, e.gid.raw.data(), sizeof out.gid.raw);
  out.gid_index = index;
  out.port_num = device::kPort;
  out.gid_type = gid_type(device);
  out.ndev_ifindex = e.ifindex;
  return out;
}

// Copies a struct to a program that may know an older or a newer one.
template <class T>
void copy_versioned(void* to, size_t size, const T& from) {
  const size_t known = std::min(size, sizeof from);
  std::memcpy(to, &from, known);
  std::memset(static_cast<char*>(to) + known, 0, size - known);
}

}  // namespace

ibv_gid_type gid_type(const device::Device& device) {
  const bool roce = device.attributes.transport == device::Transport::infiniband &&
                    device.port.link_layer == device::LinkLayer::ethernet;
  return roce ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* out, size_t size) {
  if (input != nullptr && input->comp_mask != 0) return refuse(EINVAL);
  if (size < sizeof(ibv_device_attr)) return refuse(EINVAL);
  const device::Device& device = object(context).core.device();
  ibv_device_attr_ex attr{};
  attr.orig_attr = attributes_of(device);
  // Completion timestamps are nanoseconds of the host's clock.
  attr.completion_timestamp_mask = UINT64_MAX;
  attr.hca_core_clock = 1'000'000;  // kHz
  attr.device_cap_flags_ex = kCapabilities;
  attr.phys_port_cnt_ex = device.attributes.ports;
  copy_versioned(out, size, attr);
  return 0;
}

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* out, size_t size) {
  if (port != device::kPort) return refuse(EINVAL, "port %u: the device has port 1", port);
  copy_versioned(out, size, port_of(object(context).core.device()));
  return 0;
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

// What programs from before port_cap_flags2 have room for.
struct _compat_ibv_port_attr {
  char bytes[offsetof(ibv_port_attr, port_cap_flags2)];
};

// Values of ibv_gid_type_sysfs, which rdma-core shares with ibv_devinfo and pyverbs in no public
// header.
static constexpr unsigned kSysfsIbOrRoceV1 = 0;
static constexpr unsigned kSysfsRoceV2 = 1;

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  *out = attributes_of(object(context).core.device());
  return 0;
}

int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* out) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(out), sizeof *out);
}

int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* out) {
  const device::Device& device = object(context).core.device();
  if (port != device::kPort || index < 0 || static_cast<size_t>(index) >= device.gids.size()) {
    refuse(EINVAL);
    return -1;
  }
  *out = gid_entry(device, static_cast<uint32_t>(index)).gid;
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* out,
                      uint32_t flags, size_t size) {
  const device::Device& device = object(context).core.device();
  if (flags != 0 || port != device::kPort) return refuse(EINVAL);
  if (index >= device.gids.size()) return refuse(ENODATA);
  copy_versioned(out, size, gid_entry(device, index));
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* out, size_t room, uint32_t flags,
                             size_t size) {
  const device::Device& device = object(context).core.device();
  if (flags != 0 || size == 0 || room < device.gids.size()) return -refuse(EINVAL);
  auto* to = reinterpret_cast<char*>(out);
  for (uint32_t i = 0; i < device.gids.size(); ++i, to += size) {
    copy_versioned(to, size, gid_entry(device, i));
  }
  return static_cast<ssize_t>(device.gids.size());
}

int ibv_query_gid_type(ibv_context* context, uint8_t port, unsigned index, unsigned* out) {
  const device::Device& device = object(context).core.device();
  if (port != device::kPort || index >= device.gids.size()) {
    refuse(EINVAL);
    return -1;
  }
  *out = gid_type(device) == IBV_GID_TYPE_ROCE_V2 ? kSysfsRoceV2 : kSysfsIbOrRoceV1;
  return 0;
}

WEFT_IN_PRIVATE_NODES(ibv_query_gid_type)

int ibv_query_pkey(ibv_context*, uint8_t port, int index, __be16* out) {
  if (port != device::kPort || index != 0) {
    refuse(ENOENT);  // of the file that rdma-core would read
    return -1;
  }
  *out = htobe16(device::kPkey);
  return 0;
}

int ibv_get_pkey_index(ibv_context*, uint8_t port, __be16 pkey) {
  if (port == device::kPort && pkey == htobe16(device::kPkey)) return 0;
  refuse(ENOENT);
  return -1;
}

}  // extern "C"
