// The functions that the inline part of verbs.h calls through the context. It looks before it calls
// for those that are left out, and says EOPNOTSUPP; those that it calls without a look are all
// here.
#include <ctime>

#include "abi/ibverbs/cq.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/mr.h"
#include "abi/ibverbs/mw.h"
#include "abi/ibverbs/parent_domain.h"
#include "abi/ibverbs/qp.h"
#include "abi/ibverbs/query.h"
#include "abi/ibverbs/srq.h"

namespace weft::abi {
namespace {

// The clock of completion timestamps (query_device_ex): nanoseconds, all of them in tv_nsec. mlx5
// does so with its cycles, and programs compare that field alone with timestamps; those that add
// the seconds come to the same.
int query_rt_values(ibv_context*, ibv_values_ex* values) {
  const bool clock = (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0;
  if (clock) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    values->raw_clock = {.tv_sec = 0, .tv_nsec = now.tv_sec * 1'000'000'000 + now.tv_nsec};
  }
  values->comp_mask = clock ? IBV_VALUES_MASK_RAW_CLOCK : 0;
  return 0;
}

int close_xrcd(ibv_xrcd*) {
  return refuse(EOPNOTSUPP);
}

}  // namespace

void set_operations(verbs_context& c) {
  ibv_context_ops& ops = c.context.ops;
  ops._compat_query_device = ibv_query_device;
  ops._compat_query_port = ibv_query_port;
  ops.alloc_mw = alloc_mw;
  ops.bind_mw = bind_mw;
  ops.dealloc_mw = dealloc_mw;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_srq_recv = post_srq_recv;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  c.query_port = query_port;
  c.query_rt_values = query_rt_values;
  c.create_cq_ex = create_cq_ex;
  c.query_device_ex = query_device_ex;
  c.create_qp_ex = create_qp_ex;
  c.create_srq_ex = create_srq_ex;
  c.close_xrcd = close_xrcd;
  c.modify_cq = modify_cq;
  c.alloc_null_mr = alloc_null_mr;
  c.alloc_td = alloc_td;
  c.dealloc_td = dealloc_td;
  c.alloc_parent_domain = alloc_parent_domain;
}

}  // namespace weft::abi
