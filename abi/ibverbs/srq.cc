#include "abi/ibverbs/srq.h"

#include <algorithm>
#include <new>

#include "abi/ibverbs/enums.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/events.h"
#include "abi/ibverbs/receive.h"
#include "device/device.h"

namespace weft::abi {

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const bool has_type = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
  if (has_type && number_of(attr->srq_type) != IBV_SRQT_BASIC) {
    return refuse_object(EOPNOTSUPP,
                         "shared receive queue: type %d is not supported; IBV_SRQT_BASIC (0) is",
                         number_of(attr->srq_type));
  }
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0) {
    return refuse_object(EINVAL, "shared receive queue: comp_mask lacks IBV_SRQ_INIT_ATTR_PD");
  }
  // A basic queue has no use for a completion queue. Drivers take one, and programs name one.
  constexpr uint32_t kKnown = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ;
  if ((attr->comp_mask & ~kKnown) != 0) {
    return refuse_object(EOPNOTSUPP,
                         "shared receive queue: options of comp_mask 0x%x are not supported",
                         attr->comp_mask & ~kKnown);
  }
  if (attr->pd->context != context) {
    return refuse_object(EINVAL, "shared receive queue: its pd is of another ibv_context");
  }
  ibv_srq_init_attr basic{.srq_context = attr->srq_context, .attr = attr->attr};
  ibv_srq* srq = ibv_create_srq(attr->pd, &basic);
  if (srq != nullptr) attr->attr = basic.attr;
  return srq;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  if (!object(srq->context).alive()) {
    *bad_wr = wr;
    return refuse_dead();
  }
  verbs::SharedReceiveQueue& queue = object(srq).core;
  const int error = post_receives(
      wr, bad_wr, [&](const verbs::ReceiveRequest* requests, size_t count, size_t& posted) {
        return queue.post(requests, count, posted);
      });
  if (error != EINVAL) return error;
  return refuse(EINVAL,
                "shared receive queue: a receive of %d segments; it was made for at most %u "
                "(max_sge)",
                (*bad_wr)->num_sge, queue.most_segments());
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) try {
  if (!object(pd->context).alive()) return refuse_dead_object();
  if (const int e = check_identity(object(pd), "protection domain"); e != 0) return nullptr;
  ibv_srq_attr& attr = init->attr;
  if (attr.max_wr < 1 || attr.max_wr > device::kMaxQpWr || attr.max_sge > device::kMaxSge) {
    return refuse_object(EINVAL,
                         "shared receive queue: %u requests (1 to %u) of %u segments (up to %u)",
                         attr.max_wr, device::kMaxQpWr, attr.max_sge, device::kMaxSge);
  }
  attr.max_sge = std::max(attr.max_sge, 1U);
  auto* srq = new AbiSrq{object(pd->context), object(pd), attr.max_wr, attr.max_sge};
  srq->context = pd->context;
  srq->srq_context = init->srq_context;
  srq->pd = pd;
  identify(*srq);
  pthread_mutex_init(&srq->mutex, nullptr);
  pthread_cond_init(&srq->cond, nullptr);
  return srq;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) try {
  if (!object(srq->context).alive()) return refuse_dead();
  // The size is final: the device does not claim IBV_DEVICE_SRQ_RESIZE.
  if ((mask & ~IBV_SRQ_LIMIT) != 0) {
    return refuse(EINVAL, "shared receive queue: its size cannot change; make it large enough");
  }
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  if (!object(srq).core.set_limit(attr->srq_limit).ok()) {
    return refuse(EINVAL, "shared receive queue: limit %u; it has room for %u receives",
                  attr->srq_limit, object(srq).core.capacity());
  }
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  if (!object(srq->context).alive()) return refuse_dead();
  verbs::SharedReceiveQueue& queue = object(srq).core;
  *attr = {
      .max_wr = queue.capacity(), .max_sge = queue.most_segments(), .srq_limit = queue.limit()};
  return 0;
}

int ibv_destroy_srq(ibv_srq* srq) {
  AbiContext& c = object(srq->context);
  if (!c.alive()) return 0;
  AbiSrq& q = object(srq);
  if (const int e = check_identity(q, "shared receive queue"); e != 0) return e;
  if (q.core.in_use()) {
    return refuse(EBUSY, "shared receive queue: queue pairs use it; destroy them first");
  }
  forget_events(c.core, srq);
  wait_for_acknowledgements(srq->mutex, srq->cond, srq->events_completed, q.async_delivered);
  pthread_cond_destroy(&srq->cond);
  pthread_mutex_destroy(&srq->mutex);
  delete &q;
  return 0;
}

}  // extern "C"
