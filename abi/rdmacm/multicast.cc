// Multicast groups.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "abi/rdmacm/ids.h"

namespace weft::abi {
namespace {

int join(rdma_cm_id* id, const sockaddr* addr, bool send_only, void* context) {
  const port::Address address = to_address(addr);
  if (!address.valid()) return refuse(EINVAL);
  CmId& i = object(id);
  auto fresh = std::make_unique<CmGroup>();
  fresh->address = address;
  fresh->context = context;
  fresh->send_only = send_only;
  CmGroup* group = fresh.get();
  {
    const std::lock_guard guard{i.groups_lock};
    i.groups.push_back(std::move(fresh));
  }
  const bool sync = i.sync;
  if (const int error = i.core.join_multicast(address, group); error != 0) {
    const std::lock_guard guard{i.groups_lock};
    std::erase_if(i.groups, [group](const auto& g) { return g.get() == group; });
    return refuse(error);
  }
  return sync ? complete(i) : 0;
}

}  // namespace

void enter_group(CmEvent& e, CmId& id) {
  const std::lock_guard guard{id.groups_lock};
  const auto found = std::find_if(id.groups.begin(), id.groups.end(),
                                  [&](const auto& g) { return g.get() == e.core->join; });
  if (found == id.groups.end()) return;
  CmGroup& g = **found;
  e.param.ud.private_data = g.context;
  g.gid = e.param.ud.ah_attr.grh.dgid;
  if (id.qp == nullptr || g.send_only) return;
  if (const int error = ibv_attach_mcast(id.qp, &g.gid, 0); error != 0) {
    e.event = RDMA_CM_EVENT_MULTICAST_ERROR;
    e.status = -error;
    return;
  }
  g.attached = true;
}

void detach_from_groups(CmId& id) {
  const std::lock_guard guard{id.groups_lock};
  for (const auto& g : id.groups) {
    if (std::exchange(g->attached, false)) (void)ibv_detach_mcast(id.qp, &g->gid, 0);
  }
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

int rdma_join_multicast(rdma_cm_id* id, sockaddr* addr, void* context) try {
  return join(id, addr, false, context);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr, void* context) try {
  constexpr uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED) return refuse(ENOTSUP);
  if ((attr->comp_mask & kNeeded) != kNeeded || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) {
    return refuse(EINVAL);
  }
  return join(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_leave_multicast(rdma_cm_id* id, sockaddr* addr) {
  const port::Address address = to_address(addr);
  if (!address.valid()) return refuse(EINVAL);
  CmId& i = object(id);
  std::unique_ptr<CmGroup> group;
  {
    const std::lock_guard guard{i.groups_lock};
    const auto found = std::find_if(i.groups.begin(), i.groups.end(), [&](const auto& g) {
      return g->address.length == address.length &&
             std::memcmp(&g->address.storage, &address.storage, address.length) == 0;
    });
    if (found == i.groups.end()) return refuse(EADDRNOTAVAIL);
    group = std::move(*found);
    i.groups.erase(found);
  }
  (void)i.core.leave_multicast(group.get());
  // The queue pair may have left it by another Id's call, or be a later one.
  if (group->attached && id->qp != nullptr) (void)ibv_detach_mcast(id->qp, &group->gid, 0);
  return 0;
}

}  // extern "C"
