// Completion queues, as programs reach them through the context.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

// What both kinds of ibv_create_cq do. On failure errno is set. Errors: EINVAL (entries, vector,
// channel of another device), ENOMEM.
AbiCq* create_cq(ibv_context* context, int64_t entries, void* cq_context, ibv_comp_channel* channel,
                 int64_t vector, bool timestamps);

int poll_cq(ibv_cq* cq, int room, ibv_wc* wc);
int req_notify_cq(ibv_cq* cq, int solicited_only);
// Moderation is a hint, and weft announces each completion at once.
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr);

// Errors: EOPNOTSUPP (what weft's completions do not have), EINVAL.
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);

}  // namespace weft::abi
