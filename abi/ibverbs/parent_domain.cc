#include "abi/ibverbs/parent_domain.h"

#include <new>

#include "abi/ibverbs/errors.h"

namespace weft::abi {

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) try {
  AbiContext& c = object(context);
  if (!c.alive()) return refuse_dead_object();
  if (attr->comp_mask != 0) {
    return refuse_object(EINVAL, "thread domain: comp_mask 0x%x; there are no options",
                         attr->comp_mask);
  }
  auto* td = new AbiTd{};
  td->context = context;
  c.add_ref();
  return td;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

int dealloc_td(ibv_td* td) {
  AbiContext& c = object(td->context);
  if (!c.alive()) return 0;
  if (object(td).parent_domains.load() > 0) {
    return refuse(EBUSY, "thread domain: parent domains use it; destroy them first");
  }
  delete &object(td);
  c.drop_ref();
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) try {
  AbiContext& c = object(context);
  if (!c.alive()) return refuse_dead_object();
  if (attr->pd == nullptr || attr->pd->context != context ||
      (attr->td != nullptr && attr->td->context != context)) {
    return refuse_object(EINVAL, "parent domain: it needs a pd of the same ibv_context");
  }
  constexpr uint32_t kKnown =
      IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  if ((attr->comp_mask & ~kKnown) != 0) {
    return refuse_object(EOPNOTSUPP, "parent domain: options 0x%x are not supported",
                         attr->comp_mask & ~kKnown);
  }
  // They are for queues that hardware reads. Here it reads none, and they are not called.
  const bool allocators = (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
  if (allocators && (attr->alloc == nullptr || attr->free == nullptr)) {
    return refuse_object(EINVAL, "parent domain: of alloc and free it needs both");
  }
  auto* pd = new AbiPd{object(attr->pd)};
  pd->context = context;
  identify(*pd, attr->pd->handle);
  if (attr->td != nullptr) {
    pd->thread_domain = &object(attr->td);
    pd->thread_domain->parent_domains.fetch_add(1);
  }
  c.add_ref();
  return pd;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

}  // namespace weft::abi
