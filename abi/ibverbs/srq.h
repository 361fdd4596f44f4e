// Shared receive queues, as programs reach them through the context.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

// Errors: EOPNOTSUPP (types other than basic), EINVAL, ENOMEM.
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

}  // namespace weft::abi
