/* clang-format off */
/* Queue pairs of weft's type RD: reliable datagrams, each request with an address of its own, as
 * UD's have, and with an answer of its receiver, as RC's have. C and C++. weft-rd(7) is the manual,
 * docs/rd.md says what a program may rely on, examples/rd_board.c is a program.
 *
 * Nothing here is to be linked: a program needs libibverbs alone, and calls what it has. With
 * another libibverbs than weft's, or another device, weft_rd_create_qp() fails with EOPNOTSUPP, and
 * the program may go on without.
 *
 *   created   weft_rd_create_qp(); RESET
 *   INIT      IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY, as UD; also IBV_QP_ACCESS_FLAGS. Without
 *             these peers may do what a memory region's own access flags let them
 *   RTR, RTS  as UD; to RTS also IBV_QP_RNR_RETRY: how often a request comes again that finds no
 *             receive; 7, the default, is for ever
 *   requests  by ibv_wr_start(), the operation, ibv_wr_set_ud_addr(), its data, ibv_wr_complete();
 *             Sends also by ibv_post_send() with wr.ud
 *
 * Receives have no GRH in front, unlike UD's.
 */
/* clang-format on */
#ifndef WEFT_RD_H
#define WEFT_RD_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All operations of a queue pair of this type, for ibv_qp_init_attr_ex.send_ops_flags. */
enum {
  WEFT_RD_SEND_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                     IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                     IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
};

/* Has the device this type? Not 0: yes. Versions of weft before this type say so here, and refuse
 * to create one. */
static inline int weft_rd_is_supported(struct ibv_context* context) {
  const char* name = ibv_get_device_name(context->device);
  return name != NULL && strncmp(name, "weft", 4) == 0;
}

/* Creates one. `attr` is that of ibv_create_qp_ex(3), which it calls: qp_type is filled in, and
 * without IBV_QP_INIT_ATTR_SEND_OPS_FLAGS in comp_mask the queue pair has all operations. On
 * failure NULL, and errno: EOPNOTSUPP where the device is not weft's, else as ibv_create_qp_ex(3).
 * ibv_destroy_qp(3) destroys it.
 */
static inline struct ibv_qp* weft_rd_create_qp(struct ibv_context* context,
                                               struct ibv_qp_init_attr_ex* attr) {
  if (!weft_rd_is_supported(context)) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  attr->qp_type = IBV_QPT_DRIVER;
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0) {
    attr->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr->send_ops_flags = WEFT_RD_SEND_OPS;
  }
  return ibv_create_qp_ex(context, attr);
}

#ifdef __cplusplus
}
#endif

#endif
