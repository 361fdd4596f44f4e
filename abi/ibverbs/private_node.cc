// The names of node IBVERBS_PRIVATE_34 and of its successors: what rdma-core's libraries share with
// their providers (libmlx5, libefa, ...). Programs such as perftest are linked to providers, and
// those do not load without these names (spec/abi 1.3). No provider ever works on weft:
// registration is swallowed here, so that none gets a device and none of the rest is reached in
// earnest. What is called nevertheless says EOPNOTSUPP. The names that must work,
// ibv_query_gid_type and ibv_wr_opcode_str, are elsewhere.
#include <cerrno>

#include "abi/ibverbs/private_nodes.h"

namespace {

// The functions are declared with `...` because their arguments are never looked at.
int unsupported(int result) {
  errno = EOPNOTSUPP;
  return result;
}

}  // namespace

// clang-format off
// Return 0 or an errno value.
#define WEFT_PRIVATE_COMMANDS(X)                                                                   \
  X(execute_ioctl)                                                                                 \
  X(ibv_cmd_advise_mr)         X(ibv_cmd_alloc_dm)               X(ibv_cmd_alloc_mw)               \
  X(ibv_cmd_alloc_pd)          X(ibv_cmd_attach_mcast)           X(ibv_cmd_close_xrcd)             \
  X(ibv_cmd_create_ah)         X(ibv_cmd_create_counters)        X(ibv_cmd_create_cq)              \
  X(ibv_cmd_create_cq_ex)      X(ibv_cmd_create_cq_ex2)          X(ibv_cmd_create_flow)            \
  X(ibv_cmd_create_flow_action_esp)                                                                \
  X(ibv_cmd_create_qp)         X(ibv_cmd_create_qp_ex)           X(ibv_cmd_create_qp_ex2)          \
  X(ibv_cmd_create_rwq_ind_table) X(ibv_cmd_create_srq)          X(ibv_cmd_create_srq_ex)          \
  X(ibv_cmd_create_wq)         X(ibv_cmd_dealloc_mw)             X(ibv_cmd_dealloc_pd)             \
  X(ibv_cmd_dereg_mr)          X(ibv_cmd_destroy_ah)             X(ibv_cmd_destroy_counters)       \
  X(ibv_cmd_destroy_cq)        X(ibv_cmd_destroy_flow)           X(ibv_cmd_destroy_flow_action)    \
  X(ibv_cmd_destroy_qp)        X(ibv_cmd_destroy_rwq_ind_table)  X(ibv_cmd_destroy_srq)            \
  X(ibv_cmd_destroy_wq)        X(ibv_cmd_detach_mcast)           X(ibv_cmd_free_dm)                \
  X(ibv_cmd_get_context)       X(ibv_cmd_modify_cq)              X(ibv_cmd_modify_flow_action_esp) \
  X(ibv_cmd_modify_qp)         X(ibv_cmd_modify_qp_ex)           X(ibv_cmd_modify_srq)             \
  X(ibv_cmd_modify_wq)         X(ibv_cmd_open_qp)                X(ibv_cmd_open_xrcd)              \
  X(ibv_cmd_post_recv)         X(ibv_cmd_post_send)              X(ibv_cmd_post_srq_recv)          \
  X(ibv_cmd_query_context)     X(ibv_cmd_query_device_any)       X(ibv_cmd_query_mr)               \
  X(ibv_cmd_query_port)        X(ibv_cmd_query_qp)               X(ibv_cmd_query_srq)              \
  X(ibv_cmd_read_counters)     X(ibv_cmd_reg_dm_mr)              X(ibv_cmd_reg_dmabuf_mr)          \
  X(ibv_cmd_reg_mr)            X(ibv_cmd_req_notify_cq)          X(ibv_cmd_rereg_mr)               \
  X(ibv_cmd_resize_cq)
// The same, since IBVERBS_PRIVATE_59 or _64.
#define WEFT_LATER_COMMANDS(X)                                                                     \
  X(ibv_cmd_alloc_dmah)        X(ibv_cmd_export_dmabuf_fd)       X(ibv_cmd_free_dmah)              \
  X(ibv_cmd_query_port_speed)  X(ibv_cmd_reg_mr_ex)              X(ibv_dmabuf_heap_cc_shared_init)
#define WEFT_LATER_OBJECTS(X)  X(ibv_dmabuf_heap_alloc)
#define WEFT_LATER_VOIDS(X)    X(ibv_dmabuf_heap_destroy)  X(ibv_dmabuf_heap_free)
// Return a count, or -1.
#define WEFT_PRIVATE_COUNTS(X)   X(ibv_cmd_poll_cq)  X(ibv_read_ibdev_sysfs_file)
// Return an object, or null.
#define WEFT_PRIVATE_OBJECTS(X)  X(_verbs_init_and_alloc_context)  X(verbs_open_device)
// Return nothing.
#define WEFT_PRIVATE_VOIDS(X)                                                                      \
  X(__verbs_log)  X(verbs_init_cq)  X(verbs_set_ops)  X(verbs_uninit_context)
// Each in its own node alone.
#define WEFT_REGISTRATIONS(X)                                                                      \
  X(verbs_register_driver_34)  X(verbs_register_driver_57)  X(verbs_register_driver_59)            \
  X(verbs_register_driver_64)
// clang-format on

#define WEFT_COMMAND(name)          \
  int name(...) {                   \
    return unsupported(EOPNOTSUPP); \
  }
#define WEFT_COUNT(name)    \
  int name(...) {           \
    return unsupported(-1); \
  }
#define WEFT_OBJECT(name) \
  void* name(...) {       \
    unsupported(0);       \
    return nullptr;       \
  }
#define WEFT_VOID(name) \
  void name(...) {}

extern "C" {

WEFT_PRIVATE_COMMANDS(WEFT_COMMAND)
WEFT_PRIVATE_COUNTS(WEFT_COUNT)
WEFT_PRIVATE_OBJECTS(WEFT_OBJECT)
WEFT_PRIVATE_VOIDS(WEFT_VOID)
WEFT_LATER_COMMANDS(WEFT_COMMAND)
WEFT_LATER_OBJECTS(WEFT_OBJECT)
WEFT_LATER_VOIDS(WEFT_VOID)
WEFT_REGISTRATIONS(WEFT_VOID)

// Callers make room on the stack for as many attributes as this says: their own and those of a
// chain that is not looked at here. Too many do no harm, too few would.
unsigned int __ioctl_final_num_attrs(unsigned int own, ...) {
  return own + 64;
}

// Data, not a function: providers set it.
bool verbs_allow_disassociate_destroy = false;

}  // extern "C"

WEFT_PRIVATE_COMMANDS(WEFT_IN_PRIVATE_NODES)
WEFT_PRIVATE_COUNTS(WEFT_IN_PRIVATE_NODES)
WEFT_PRIVATE_OBJECTS(WEFT_IN_PRIVATE_NODES)
WEFT_PRIVATE_VOIDS(WEFT_IN_PRIVATE_NODES)
WEFT_LATER_COMMANDS(WEFT_IN_LATER_NODES)
WEFT_LATER_OBJECTS(WEFT_IN_LATER_NODES)
WEFT_LATER_VOIDS(WEFT_IN_LATER_NODES)
WEFT_IN_PRIVATE_NODES(__ioctl_final_num_attrs)
WEFT_IN_PRIVATE_NODES(verbs_allow_disassociate_destroy)
