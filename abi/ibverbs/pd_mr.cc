// Protection domains and memory regions.
#include <cstdint>
#include <memory>
#include <new>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/mr.h"
#include "abi/ibverbs/objects.h"
#include "abi/ibverbs/signal_hook.h"
#include "verbs/null_memory.h"

namespace weft::abi {
namespace {

namespace access = verbs::access;
static_assert(access::kLocalWrite == IBV_ACCESS_LOCAL_WRITE &&
              access::kRemoteWrite == IBV_ACCESS_REMOTE_WRITE &&
              access::kRemoteRead == IBV_ACCESS_REMOTE_READ &&
              access::kRemoteAtomic == IBV_ACCESS_REMOTE_ATOMIC &&
              access::kMwBind == IBV_ACCESS_MW_BIND &&
              access::kZeroBased == IBV_ACCESS_ZERO_BASED &&
              access::kOnDemand == IBV_ACCESS_ON_DEMAND && access::kHugeTlb == IBV_ACCESS_HUGETLB &&
              access::kOptionalRange == IBV_ACCESS_OPTIONAL_RANGE);

AbiContext& context_of(const ibv_pd* pd) {
  return object(pd->context);
}

// Optional rights are hints; weft follows none of them.
uint32_t rights(unsigned requested) {
  return requested & ~uint32_t{access::kOptionalRange};
}

uint64_t zero_based(unsigned requested, uint64_t iova) {
  return (requested & access::kZeroBased) != 0 ? 0 : iova;
}

int refuse_rereg(int error) {
  refuse(error);
  return IBV_REREG_MR_ERR_INPUT;  // the region is as it was
}

ibv_mr* register_region(ibv_pd* pd, void* address, size_t length, uint64_t iova, uint32_t access) {
  AbiContext& c = context_of(pd);
  if (const int e = check_identity(object(pd), "protection domain"); e != 0) return nullptr;
  auto mr = std::make_unique<AbiMr>();
  const auto region = c.core.adapter().memory().add(object(pd).core, address, length, iova, access);
  stats::DeviceCounters& counters = c.core.adapter().counters().device();
  if (!region.ok()) {
    counters.registrations_refused.add_shared();
    return refuse_object(region.error());
  }
  counters.regions_registered.add_shared();
  mr->region = *region;
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  identify(*mr);
  mr->lkey = mr->rkey = (*region)->stag.value();
  return mr.release();
}

}  // namespace

// Its lkey is good for any address. No peer has a right to it, and no window opens on it.
ibv_mr* alloc_null_mr(ibv_pd* pd) try {
  if (!context_of(pd).alive()) return refuse_dead_object();
  std::byte* const memory = verbs::NullMemory::make();
  if (memory == nullptr) {
    return refuse_object(ENOMEM, "null memory region: 4 GiB of addresses cannot be mapped");
  }
  ibv_mr* mr = register_region(pd, memory, verbs::NullMemory::kSize, 0, 0);
  if (mr == nullptr) return nullptr;
  mr->addr = nullptr;
  mr->length = SIZE_MAX;
  mr->rkey = 0;
  return mr;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) try {
  AbiContext& c = object(context);
  if (!c.alive()) return refuse_dead_object();
  auto* pd = new AbiPd{c};
  pd->context = context;
  identify(*pd);
  c.add_ref();
  return pd;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

int ibv_dealloc_pd(ibv_pd* pd) {
  AbiContext& c = context_of(pd);
  if (!c.alive()) return 0;
  AbiPd& p = object(pd);
  if (const int e = check_identity(p, "protection domain"); e != 0) return e;
  if (p.is_parent()) {
    p.core.drop_ref();
    if (p.thread_domain != nullptr) p.thread_domain->parent_domains.fetch_sub(1);
  } else if (p.core.in_use()) {
    return refuse(EBUSY, "protection domain: there are objects in it; destroy them first");
  }
  delete &p;
  c.drop_ref();
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova,
                         unsigned requested) try {
  if (!context_of(pd).alive()) return refuse_dead_object();
  hook_signals();  // of what was loaded since the device was opened
  return register_region(pd, address, length, zero_based(requested, iova), rights(requested));
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int requested) {
  return ibv_reg_mr_iova2(pd, address, length, iova, static_cast<unsigned>(requested));
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int requested) {
  return ibv_reg_mr_iova2(pd, address, length, reinterpret_cast<uintptr_t>(address),
                          static_cast<unsigned>(requested));
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  return refuse_object(EOPNOTSUPP);
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length,
                 int requested) try {
  AbiContext& c = object(mr->context);
  if (!c.alive()) {
    refuse_dead();
    return IBV_REREG_MR_ERR_INPUT;
  }
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return refuse_rereg(EINVAL);
  if (moves && (length == 0 || address == nullptr)) return refuse_rereg(EINVAL);
  if (requested != 0 && !changes_access) return refuse_rereg(EINVAL);
  if (changes_pd && (pd == nullptr || pd->context != mr->context)) return refuse_rereg(EINVAL);

  verbs::Region& old = *object(mr).region;
  if (verbs::NullMemory::is(old.base)) return refuse_rereg(EINVAL);
  const auto asked = static_cast<unsigned>(requested);
  const uint32_t access = changes_access ? rights(asked) : old.access;
  uint64_t iova = old.iova;
  if (moves) iova = zero_based(access, reinterpret_cast<uintptr_t>(address));
  const auto fresh = c.core.adapter().memory().replace(&old, changes_pd ? object(pd).core : *old.pd,
                                                       moves ? address : mr->addr,
                                                       moves ? length : mr->length, iova, access);
  if (!fresh.ok()) return refuse_rereg(to_errno(fresh.error()));
  object(mr).region = *fresh;
  if (changes_pd) mr->pd = pd;
  if (moves) {
    mr->addr = address;
    mr->length = length;
  }
  return 0;
} catch (const std::bad_alloc&) {
  return refuse_rereg(ENOMEM);
}

int ibv_dereg_mr(ibv_mr* mr) {
  AbiContext& c = object(mr->context);
  if (!c.alive()) return 0;
  if (const int e = check_identity(object(mr), "memory region"); e != 0) return e;
  if (!c.core.adapter().memory().remove(object(mr).region).ok()) {
    return refuse(EBUSY, "memory region: memory windows are bound to it; unbind them first");
  }
  delete &object(mr);
  return 0;
}

}  // extern "C"
