// Ids: their beginning, addresses, options and end.
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/ids.h"
#include "base/rdma_option.h"
#include "device/device.h"

namespace weft::abi {
namespace {

// As the kernel's rdma_cm fills a path over Ethernet.
constexpr uint8_t kExactly = 2;  // the selectors of InfiniBand's path records
constexpr uint8_t kPacketLifeTime = 18;
constexpr uint8_t kHopLimit = 64;

__be16 port_of(const sockaddr& a) {
  switch (a.sa_family) {
    case AF_INET:
      return reinterpret_cast<const sockaddr_in&>(a).sin_port;
    case AF_INET6:
      return reinterpret_cast<const sockaddr_in6&>(a).sin6_port;
    default:
      return 0;
  }
}

struct KnownOption {
  cm::IdOption::Name name{};
  size_t size = sizeof(int);  // of its value
};

std::optional<KnownOption> known_option(int level, int optname) {
  using Name = cm::IdOption::Name;
  if (level == kWeftOptionLevel && optname == kOptionAsksAgain) return {{Name::asks_again}};
  if (level == kWeftOptionLevel && optname == kOptionOnlyRc) return {{Name::only_rc}};
  if (level == kWeftOptionLevel && optname == kOptionKeepalive)
    return {{Name::keepalive, sizeof(Keepalive)}};
  if (level != RDMA_OPTION_ID) return std::nullopt;
  switch (optname) {
    case RDMA_OPTION_ID_TOS:
      return {{Name::type_of_service, sizeof(uint8_t)}};
    case RDMA_OPTION_ID_REUSEADDR:
      return {{Name::reuse_address}};
    case RDMA_OPTION_ID_AFONLY:
      return {{Name::one_family}};
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      return {{Name::ack_timeout, sizeof(uint8_t)}};
    default:
      return std::nullopt;
  }
}

}  // namespace

port::Address to_address(const sockaddr* a) {
  port::Address address;
  if (a == nullptr) return address;
  switch (a->sa_family) {
    case AF_INET:
      address.length = sizeof(sockaddr_in);
      break;
    case AF_INET6:
      address.length = sizeof(sockaddr_in6);
      break;
    default:
      return address;
  }
  std::memcpy(&address.storage, a, address.length);
  return address;
}

void update_addresses(CmId& id) {
  const cm::Addresses a = id.core.addresses();
  rdma_addr& r = id.route.addr;
  if (a.source.valid()) std::memcpy(&r.src_storage, &a.source.storage, a.source.length);
  if (a.destination.valid()) {
    std::memcpy(&r.dst_storage, &a.destination.storage, a.destination.length);
  }
  std::memcpy(r.addr.ibaddr.sgid.raw, a.source_gid.raw.data(), a.source_gid.raw.size());
  std::memcpy(r.addr.ibaddr.dgid.raw, a.destination_gid.raw.data(), a.destination_gid.raw.size());
}

int take_device(CmId& id) {
  if (id.verbs != nullptr) {
    update_addresses(id);
    return 0;
  }
  const SharedDevice* d = shared_device();
  if (d == nullptr) return errno;
  id.verbs = d->verbs;
  if (id.pd == nullptr) id.pd = d->pd;
  id.port_num = device::kPort;
  id.route.addr.addr.ibaddr.pkey = htobe16(device::kPkey);
  id.core.set_device(the_core().context_of(d->verbs));
  update_addresses(id);
  return 0;
}

int fill_route(CmId& id) {
  // iWARP has no path records.
  if (id.verbs->device->transport_type != IBV_TRANSPORT_IB) return 0;
  ibv_port_attr port{};
  if (const int error = ibv_query_port(id.verbs, device::kPort, &port); error != 0) return error;
  if (id.route.path_rec == nullptr) {
    id.route.path_rec = static_cast<ibv_sa_path_rec*>(std::calloc(1, sizeof(ibv_sa_path_rec)));
    if (id.route.path_rec == nullptr) return ENOMEM;
  }
  ibv_sa_path_rec& p = *id.route.path_rec;
  p.sgid = id.route.addr.addr.ibaddr.sgid;
  p.dgid = id.route.addr.addr.ibaddr.dgid;
  p.hop_limit = kHopLimit;
  p.reversible = 1;
  p.numb_path = 1;
  p.pkey = htobe16(device::kPkey);
  p.mtu_selector = p.rate_selector = p.packet_life_time_selector = kExactly;
  p.mtu = static_cast<uint8_t>(port.active_mtu);
  p.rate = static_cast<uint8_t>(mbps_to_ibv_rate(device::kMegabits));
  p.packet_life_time = kPacketLifeTime;
  id.route.num_paths = 1;
  return 0;
}

int create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space,
              ibv_qp_type type) try {
  const bool sync = channel == nullptr;
  OwnedChannel own{sync ? create_channel() : nullptr};
  rdma_event_channel* c = sync ? own.get() : channel;
  if (c == nullptr) return -1;
  const std::shared_ptr<cm::Channel> events = core_of(c);
  if (events == nullptr) return refuse(EBADF);
  cm::Id* core = nullptr;
  int error = connections().create_id(*events, static_cast<cm::PortSpace>(space), core);
  CmId* fresh = nullptr;
  if (error == 0) {
    fresh = new (std::nothrow) CmId{*core, c, sync};
    if (fresh == nullptr) {
      core->destroy();
      error = ENOMEM;
    }
  }
  if (error != 0) return refuse(error);
  (void)own.release();
  core->set_owner(fresh);
  fresh->context = context;
  fresh->ps = space;
  fresh->qp_type = type;
  *id = fresh;
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

void free_id(CmId* id) {
  if (id->sync) destroy_channel(id->channel);
  std::free(id->route.path_rec);
  delete id;
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space ps) {
  return create_id(channel, id, context, ps,
                   ps == RDMA_PS_IPOIB || ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC);
}

int rdma_destroy_id(rdma_cm_id* id) try {
  CmId& i = object(id);
  if (i.event != nullptr) rdma_ack_cm_event(i.event);
  i.event = nullptr;
  if (const int error = i.core.destroy(); error != 0) return refuse(error);
  free_id(&i);
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr* addr) try {
  const port::Address at = to_address(addr);
  if (!at.valid()) return refuse("rdma_bind_addr", "the address is neither IPv4 nor IPv6");
  CmId& i = object(id);
  if (const int error = i.core.bind(at); error != 0) return refuse(error);
  // A wildcard is not on any device yet.
  if (!i.core.on_device()) {
    update_addresses(i);
    return 0;
  }
  return result(take_device(i));
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* src_addr, sockaddr* dst_addr, int) try {
  const port::Address source = to_address(src_addr);
  const port::Address destination = to_address(dst_addr);
  if (!destination.valid() || (src_addr != nullptr && !source.valid())) {
    return refuse("rdma_resolve_addr", "an address is neither IPv4 nor IPv6");
  }
  CmId& i = object(id);
  // Before the event can reach a thread that waits for it.
  std::memcpy(&i.route.addr.dst_storage, &destination.storage, destination.length);
  // Whoever waits for the event may destroy the Id.
  const bool sync = i.sync;
  if (const int error = i.core.resolve_address(source, destination); error != 0) {
    return refuse(error);
  }
  return sync ? complete(i) : 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

// Over IP there is no route to ask for.
int rdma_resolve_route(rdma_cm_id* id, int) try {
  CmId& i = object(id);
  const bool sync = i.sync;
  if (const int error = i.core.resolve_route(); error != 0) return refuse(error);
  return sync ? complete(i) : 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_listen(rdma_cm_id* id, int backlog) try {
  CmId& i = object(id);
  if (const int error = i.core.listen(backlog); error != 0) return refuse(error);
  update_addresses(i);
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

__be16 rdma_get_src_port(rdma_cm_id* id) {
  return port_of(id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(rdma_cm_id* id) {
  return port_of(id->route.addr.dst_addr);
}

int rdma_set_option(rdma_cm_id* id, int level, int optname, void* optval, size_t optlen) try {
  CmId& i = object(id);
  if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH) {
    // The paths themselves mean nothing over IP, but saying them is resolving the route.
    if (optlen == 0 || optlen % sizeof(ibv_path_data) != 0) return refuse(EINVAL);
    return result(i.core.resolve_route());
  }
  const auto known = known_option(level, optname);
  if (!known) return refuse(ENOSYS);
  if (optlen != known->size || optval == nullptr) return refuse(EINVAL);
  cm::IdOption option{.name = known->name};
  if (known->name == cm::IdOption::Name::keepalive) {
    std::memcpy(&option.keepalive, optval, sizeof option.keepalive);
  } else if (known->size == sizeof(int)) {
    std::memcpy(&option.value, optval, sizeof(int));
  } else {
    option.value = *static_cast<const uint8_t*>(optval);
  }
  return result(i.core.set_option(option));
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) try {
  CmId& i = object(id);
  const bool sync = channel == nullptr;
  if (i.sync && sync) return refuse(EINVAL);
  OwnedChannel own{sync ? create_channel() : nullptr};
  rdma_event_channel* to = sync ? own.get() : channel;
  if (to == nullptr) return -1;
  const std::shared_ptr<cm::Channel> events = core_of(to);
  if (events == nullptr) return refuse(EBADF);
  if (i.sync && i.event != nullptr) {
    rdma_ack_cm_event(i.event);
    i.event = nullptr;
  }
  uint64_t taken = 0;
  if (const int error = i.core.migrate(*events, taken); error != 0) return refuse(error);
  if (i.sync) destroy_channel(i.channel);
  i.sync = sync;
  i.channel = to;
  (void)own.release();
  // Whoever takes events from the new channel meanwhile finds the Id there already, and need not
  // acknowledge those.
  i.core.await_acknowledgements(taken);
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

}  // extern "C"
