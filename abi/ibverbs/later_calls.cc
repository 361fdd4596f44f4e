// What rdma-core 59 and later have and Debian 12's headers do not declare: nodes IBVERBS_1.15 to
// 1.17 (spec/abi 1.2). Programs that were made with them start, and get what weft has.
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "abi/ibverbs/errors.h"
#include "device/device.h"

using namespace weft;
using namespace weft::abi;

namespace {

// Of ibv_mr_init_attr.
enum RegionPart : uint64_t {
  kHasIova = 1 << 0,
  kHasAddress = 1 << 1,
  kHasFile = 1 << 2,
  kHasFileOffset = 1 << 3,
  kHasBuffer = 1 << 5,
};

// A lane of active_speed 32 has 25 Gb/s, and active_width 2 is four of them.
constexpr uint64_t kPortSpeed = uint64_t{4} * 250;  // x 100 Mb/s

}  // namespace

extern "C" {

// What ibv_alloc_buf gave. The program knows its address alone.
struct ibv_buf {  // NOLINT(readability-identifier-naming): rdma-core's
  struct Freed {
    void operator()(void* memory) const { std::free(memory); }
  };
  ibv_pd* pd = nullptr;
  std::unique_ptr<std::byte, Freed> memory;
  size_t size = 0;

  // Whether all of `length` bytes at `address` is the buffer's.
  bool has(const void* address, size_t length) const {
    const auto first = reinterpret_cast<uintptr_t>(memory.get());
    const auto asked = reinterpret_cast<uintptr_t>(address);
    return asked >= first && asked - first <= size && length <= size - (asked - first);
  }
};

struct ibv_mr_init_attr {  // NOLINT(readability-identifier-naming): rdma-core's
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  // Memory that is no mapping of the program's.
  int fd;
  uint64_t fd_offset;
  void* dmah;
  ibv_buf* buf;
};

// Memory at an address, as ibv_reg_mr_iova2 has it, also of a buffer that ibv_alloc_buf gave. Files
// of a DMA buffer and handles are not supported, like ibv_reg_dmabuf_mr.
ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr) {
  const bool has_buffer = (attr->comp_mask & kHasBuffer) != 0;
  if (has_buffer && (attr->comp_mask & uint64_t{kHasFile | kHasFileOffset}) != 0) {
    return refuse_object(EINVAL);
  }
  if ((attr->comp_mask & ~uint64_t{kHasIova | kHasAddress | kHasBuffer}) != 0) {
    return refuse_object(EOPNOTSUPP);
  }
  if ((attr->comp_mask & kHasAddress) == 0) {
    return refuse_object(EINVAL, "ibv_reg_mr_ex: comp_mask 0x%llx names no address",
                         static_cast<unsigned long long>(attr->comp_mask));
  }
  if (has_buffer &&
      (attr->buf == nullptr || attr->buf->pd != pd || !attr->buf->has(attr->addr, attr->length))) {
    return refuse_object(
        EINVAL,
        "ibv_reg_mr_ex: there is no buffer, it is of another protection domain, or "
        "has not all of the %zu bytes at %p",
        attr->length, attr->addr);
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

// Ordinary memory at a page's start, as of rdma-core's providers that say nothing else. The handle
// is for ibv_reg_buf_mr and ibv_free_buf.
void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buf) {
  std::unique_ptr<ibv_buf> made{new (std::nothrow) ibv_buf};
  void* memory = nullptr;
  if (made == nullptr ||
      posix_memalign(&memory, static_cast<size_t>(sysconf(_SC_PAGESIZE)), size) != 0) {
    return refuse_object(ENOMEM);
  }
  made->pd = pd;
  made->memory.reset(static_cast<std::byte*>(memory));
  made->size = size;
  *buf = made.release();
  return memory;
}

void ibv_free_buf(ibv_buf* buf) {
  delete buf;
}

ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, size_t length, int access) {
  ibv_mr_init_attr attr{};
  attr.length = length;
  attr.access = access;
  attr.comp_mask = kHasAddress | kHasBuffer;
  attr.addr = addr;
  attr.buf = buf;
  return ibv_reg_mr_ex(pd, &attr);
}

// Handles of memory for a device's own caches, and memory of a device as a file.
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

}  // extern "C"
