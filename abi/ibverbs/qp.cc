#include "abi/ibverbs/qp.h"

#include <memory>
#include <new>

#include "abi/ibverbs/attributes.h"
#include "abi/ibverbs/enums.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/events.h"
#include "base/log.h"
#include "device/device.h"

namespace weft::abi {
namespace {

constexpr uint32_t kInitMask =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
// Of queue pairs that are no UD's the flag means nothing: they hear no group.
constexpr uint32_t kCreateFlags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
// Masks from here on go to the kernel in another way, which no software device takes.
constexpr auto kModifyMask = static_cast<uint32_t>((IBV_QP_DEST_QPN << 1) - 1);

static_assert(static_cast<int>(verbs::QpType::rc) == IBV_QPT_RC &&
              static_cast<int>(verbs::QpType::uc) == IBV_QPT_UC &&
              static_cast<int>(verbs::QpType::ud) == IBV_QPT_UD &&
              static_cast<int>(verbs::QpType::rd) == IBV_QPT_DRIVER);

constexpr char kType[] =
    "queue pair: type %d is not supported; RC (2), UC (3), UD (4) and RD (255) are";

int check_type(int type) {
  if (verbs::find_type(type) != nullptr) return 0;
  switch (type) {
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return EOPNOTSUPP;
  }
  return EINVAL;
}

Nothing explain(verbs::Errc e, const ibv_qp_init_attr& attr) {
  const ibv_qp_cap& cap = attr.cap;
  switch (e) {
    case verbs::Errc::invalid:
      // libfabric asks for more and more until it is refused: no news to the user (spec/abi 4.5).
      if (cap.max_inline_data > device::kMaxInline) {
        WEFT_LOG(info, "queue pair: %u inline bytes (limit %u)", cap.max_inline_data,
                 device::kMaxInline);
        return refuse_object(EINVAL);
      }
      if (cap.max_send_wr > device::kMaxQpWr) {
        return refuse_object(EINVAL, "queue pair: cap.max_send_wr is %u; the device has at most %u",
                             cap.max_send_wr, device::kMaxQpWr);
      }
      if (cap.max_recv_wr > device::kMaxQpWr && attr.srq == nullptr) {
        return refuse_object(EINVAL, "queue pair: cap.max_recv_wr is %u; the device has at most %u",
                             cap.max_recv_wr, device::kMaxQpWr);
      }
      if (cap.max_send_sge > device::kMaxSge) {
        return refuse_object(EINVAL,
                             "queue pair: cap.max_send_sge is %u; the device has at most %u",
                             cap.max_send_sge, device::kMaxSge);
      }
      return refuse_object(EINVAL, "queue pair: cap.max_recv_sge is %u; the device has at most %u",
                           cap.max_recv_sge, device::kMaxSge);
    case verbs::Errc::not_supported:
      return refuse_object(EOPNOTSUPP, kType, static_cast<int>(attr.qp_type));
    default:
      return refuse_object(e);
  }
}

bool are_known(ibv_pd* pd, const ibv_qp_init_attr& attr) {
  return check_identity(object(pd), "protection domain") == 0 &&
         check_identity(object(attr.send_cq), "completion queue") == 0 &&
         check_identity(object(attr.recv_cq), "completion queue") == 0 &&
         (attr.srq == nullptr || check_identity(object(attr.srq), "shared receive queue") == 0);
}

// Objects of another open device are another adapter's to a program.
bool of_one_context(const ibv_context* context, const ibv_qp_init_attr& attr) {
  return attr.send_cq->context == context && attr.recv_cq->context == context &&
         (attr.srq == nullptr || attr.srq->context == context);
}

// `flags`: of kCreateFlags.
AbiQp* create_qp(ibv_pd* pd, ibv_qp_init_attr& attr, uint32_t flags = 0) try {
  AbiContext& c = object(pd->context);
  if (!c.alive()) return refuse_dead_object();
  const int type = number_of(attr.qp_type);
  if (const int e = check_type(type); e != 0) return refuse_object(e, kType, type);
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) {
    return refuse_object(EINVAL, "queue pair: it needs a send_cq and a recv_cq");
  }
  if (!of_one_context(pd->context, attr)) {
    return refuse_object(EINVAL,
                         "queue pair: its pd, completion queues and shared receive queue are not "
                         "all of one ibv_context");
  }
  if (!are_known(pd, attr)) return nullptr;
  auto qp = std::make_unique<AbiQp>(c);
  verbs::QpInit init{.context = &c.core,
                     .pd = &object(pd).core,
                     .send_cq = &object(attr.send_cq).core,
                     .recv_cq = &object(attr.recv_cq).core,
                     .srq = attr.srq == nullptr ? nullptr : &object(attr.srq).core,
                     .type = static_cast<verbs::QpType>(attr.qp_type),
                     .limits = to_limits(attr.cap),
                     .signal_all = attr.sq_sig_all != 0,
                     .block_own_multicast = (flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) != 0,
                     .owner = &qp->base()};
  auto core = verbs::QueuePair::create(init);
  if (!core.ok()) return explain(core.error(), attr);
  qp->core = std::move(*core);
  attr.cap = to_cap(qp->core->limits());
  ibv_qp& base = qp->base();
  base.context = pd->context;
  base.qp_context = attr.qp_context;
  base.pd = pd;
  base.send_cq = attr.send_cq;
  base.recv_cq = attr.recv_cq;
  base.srq = attr.srq;
  identify(*qp);
  base.qp_num = qp->core->number().value();
  base.state = IBV_QPS_RESET;
  base.qp_type = attr.qp_type;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  const std::lock_guard guard{c.lock};
  c.queue_pairs.push_back(*qp);
  return qp.release();
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const int type = number_of(attr->qp_type);
  if (const int e = check_type(type); e != 0) return refuse_object(e, kType, type);
  if ((attr->comp_mask & ~kInitMask) != 0) {
    return refuse_object(EOPNOTSUPP, "queue pair: options of comp_mask 0x%x are not supported",
                         attr->comp_mask & ~kInitMask);
  }
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    return refuse_object(EINVAL, "queue pair: comp_mask lacks IBV_QP_INIT_ATTR_PD");
  }
  if (attr->pd->context != context) {
    return refuse_object(EINVAL, "queue pair: its pd is of another ibv_context");
  }
  const bool has_flags = (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0;
  const uint32_t flags = has_flags ? attr->create_flags : 0;
  if ((flags & ~kCreateFlags) != 0) {
    return refuse_object(EOPNOTSUPP, "queue pair: create_flags 0x%x are not supported",
                         flags & ~kCreateFlags);
  }
  const bool extended = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (extended && (attr->send_ops_flags & ~builder_operations(attr->qp_type)) != 0) {
    return refuse_object(EOPNOTSUPP, "queue pair: no operations 0x%lx of IBV_QP_EX_WITH_...",
                         static_cast<unsigned long>(attr->send_ops_flags));
  }
  // The part that both structs have.
  ibv_qp_init_attr basic{.qp_context = attr->qp_context,
                         .send_cq = attr->send_cq,
                         .recv_cq = attr->recv_cq,
                         .srq = attr->srq,
                         .cap = attr->cap,
                         .qp_type = attr->qp_type,
                         .sq_sig_all = attr->sq_sig_all};
  std::unique_ptr<WrBuilder> builder{extended ? new (std::nothrow) WrBuilder : nullptr};
  if (extended && builder == nullptr) return refuse_object(ENOMEM, "queue pair: no memory");
  AbiQp* qp = create_qp(attr->pd, basic, flags);
  if (qp == nullptr) return nullptr;
  attr->cap = basic.cap;
  if (extended) set_builder(*qp, std::move(builder));
  return &qp->base();
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  AbiQp* qp = create_qp(pd, *attr);
  return qp == nullptr ? nullptr : &qp->base();
}

// Null for queue pairs that were not made for ibv_wr_..., as in rdma-core.
ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  return object(qp).builder != nullptr ? &object(qp) : nullptr;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask) try {
  if (!object(qp->context).alive()) return refuse_dead();
  if (const int e = check_identity(object(qp), "queue pair"); e != 0) return e;
  const auto mask = static_cast<uint32_t>(attr_mask);
  if ((mask & ~kModifyMask) != 0) {
    return refuse(EOPNOTSUPP, "queue pair 0x%06x: attr_mask 0x%x; the bits of 0x%x are possible",
                  qp->qp_num, mask, kModifyMask);
  }
  verbs::QpAttributes attributes;
  if (!to_attributes(*attr, mask, attributes)) return refuse(EINVAL);
  if (const auto modified = object(qp).core->modify(attributes, mask); !modified.ok())
    return refuse(modified.error());  // it has said why
  if ((mask & IBV_QP_STATE) != 0) qp->state = attr->qp_state;
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  if (!object(qp->context).alive()) return refuse_dead();
  if (const int e = check_identity(object(qp), "queue pair"); e != 0) return e;
  verbs::QueuePair& core = *object(qp).core;
  to_qp_attr(core.query(), *attr);
  attr->cap = to_cap(core.limits());
  *init = {.qp_context = qp->qp_context,
           .send_cq = qp->send_cq,
           .recv_cq = qp->recv_cq,
           .srq = qp->srq,
           .cap = attr->cap,
           .qp_type = qp->qp_type,
           .sq_sig_all = core.signal_all() ? 1 : 0};
  qp->state = attr->qp_state;
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  AbiContext& c = object(qp->context);
  if (!c.alive()) return 0;
  AbiQp& q = object(qp);
  if (const int e = check_identity(q, "queue pair"); e != 0) return e;
  if (q.core->in_groups()) {
    return refuse(EBUSY, "queue pair 0x%06x: it is attached to a multicast group", qp->qp_num);
  }
  {
    const std::lock_guard guard{c.lock};
    q.ListHook<OpenQps>::unlink();
  }
  if (q.builder != nullptr) q.builder->posting.reset();
  q.core.reset();
  forget_events(c.core, qp);
  wait_for_acknowledgements(qp->mutex, qp->cond, qp->events_completed, q.async_delivered);
  pthread_cond_destroy(&qp->cond);
  pthread_mutex_destroy(&qp->mutex);
  delete &q;
  return 0;
}

// Segments of one message are placed as they come, and a byte stream keeps their order; but bytes
// of one segment may be copied in any order.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) {
  return 0;
}

int ibv_query_ece(ibv_qp*, ibv_ece*) {
  return refuse(EOPNOTSUPP);
}
int ibv_set_ece(ibv_qp*, ibv_ece*) {
  return refuse(EOPNOTSUPP);
}

// Groups are named by their GID alone: LIDs of groups are InfiniBand's.
int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) try {
  if (!object(qp->context).alive()) return refuse_dead();
  return result(object(qp).core->attach_multicast(to_gid(*gid)));
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}
int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) try {
  if (!object(qp->context).alive()) return refuse_dead();
  return result(object(qp).core->detach_multicast(to_gid(*gid)));
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

}  // extern "C"
