// Calls about memory regions that the inline part of verbs.h makes through the context.
#pragma once

#include <infiniband/verbs.h>

namespace weft::abi {

ibv_mr* alloc_null_mr(ibv_pd* pd);

}  // namespace weft::abi
