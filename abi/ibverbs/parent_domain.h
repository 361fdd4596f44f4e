// Thread domains and parent domains: how a program says which of its objects one thread uses alone.
// weft locks nothing that this would spare, so they are names for what there is.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr);
int dealloc_td(ibv_td* td);
// Stands for the protection domain that it is made of. Allocators are taken and not called. Errors:
// EINVAL, EOPNOTSUPP (unknown options).
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr);

}  // namespace weft::abi
