// Multicast groups: datagram port spaces have them, and weft's rdma_cm does connections alone.
#include "abi/rdmacm/ids.h"

namespace weft::abi {
namespace {

int unsupported() {
  connections().say_unsupported("multicast by rdma_cm");
  return refuse(EOPNOTSUPP);
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_join_multicast(rdma_cm_id*, sockaddr* addr, void*) {
  return to_address(addr).valid() ? unsupported() : refuse(EINVAL);
}

int rdma_join_multicast_ex(rdma_cm_id*, rdma_cm_join_mc_attr_ex* attr, void*) {
  constexpr uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED) return refuse(ENOTSUP);
  if ((attr->comp_mask & kNeeded) != kNeeded || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED ||
      !to_address(attr->addr).valid()) {
    return refuse(EINVAL);
  }
  return unsupported();
}

int rdma_leave_multicast(rdma_cm_id*, sockaddr* addr) {
  // No group was ever joined.
  return refuse(to_address(addr).valid() ? EADDRNOTAVAIL : EINVAL);
}

}  // extern "C"
