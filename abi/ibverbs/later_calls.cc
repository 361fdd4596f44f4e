// What rdma-core 59 and later have and Debian 12's headers do not declare: nodes IBVERBS_1.15 to
// 1.17 (spec/abi 1.2). Programs that were made with them start, and get what weft has.
#include <infiniband/verbs.h>

#include "abi/ibverbs/errors.h"
#include "device/device.h"

using namespace weft;
using namespace weft::abi;

namespace {

// Of ibv_mr_init_attr.
enum RegionPart : uint64_t {
  kHasIova = 1 << 0,
  kHasAddress = 1 << 1,
};

// A lane of active_speed 32 has 25 Gb/s, and active_width 2 is four of them.
constexpr uint64_t kPortSpeed = uint64_t{4} * 250;  // x 100 Mb/s

}  // namespace

extern "C" {

struct ibv_mr_init_attr {  // NOLINT(readability-identifier-naming): rdma-core's
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  // What follows is for memory that is no mapping of the program's.
};

// Memory at an address, as ibv_reg_mr_iova2 has it. Files of a DMA buffer and handles are not
// supported, like ibv_reg_dmabuf_mr.
ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr) {
  if ((attr->comp_mask & ~uint64_t{kHasIova | kHasAddress}) != 0) {
    return refuse_object(EOPNOTSUPP);
  }
  if ((attr->comp_mask & kHasAddress) == 0) {
    return refuse_object(EINVAL, "ibv_reg_mr_ex: comp_mask 0x%llx names no address",
                         static_cast<unsigned long long>(attr->comp_mask));
  }
  const bool has_iova = (attr->comp_mask & kHasIova) != 0;
  return ibv_reg_mr_iova2(pd, attr->addr, attr->length,
                          has_iova ? attr->iova : reinterpret_cast<uintptr_t>(attr->addr),
                          static_cast<unsigned>(attr->access));
}

int ibv_query_port_speed(ibv_context* context, uint32_t port, uint64_t* speed) {
  if (!object(context).alive()) return refuse_dead();
  if (port != device::kPort) return refuse(EINVAL);
  *speed = kPortSpeed;
  return 0;
}

// Handles of memory for a device's own caches, memory of a device as a file, and buffers of a
// provider's choice.
void* ibv_alloc_dmah(ibv_context*, void*) {
  return refuse_object(EOPNOTSUPP);
}
int ibv_dealloc_dmah(void*) {
  return refuse(EOPNOTSUPP);
}
int ibv_dm_export_dmabuf_fd(ibv_dm*) {
  refuse(EOPNOTSUPP);
  return -1;
}
void* ibv_alloc_buf(ibv_pd*, size_t, void**) {
  return refuse_object(EOPNOTSUPP);
}
void ibv_free_buf(void*) {}
ibv_mr* ibv_reg_buf_mr(ibv_pd*, void*, void*, size_t, int) {
  return refuse_object(EOPNOTSUPP);
}

}  // extern "C"
