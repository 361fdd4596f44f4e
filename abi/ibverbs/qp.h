// Queue pairs, as programs reach them through the context.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

// Errors: EOPNOTSUPP (types, options and operations that weft does not have), EINVAL, ENOMEM.
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

// The operations that ibv_wr_... has for a type of queue pair, of IBV_QP_EX_WITH_...
uint64_t builder_operations(ibv_qp_type type);
// Fills the functions that ibv_wr_... calls.
void set_builder(AbiQp& qp, std::unique_ptr<WrBuilder> builder);

}  // namespace weft::abi
