// Queue pairs, completion queues and shared receive queues that belong to an Id.
#include <rdma/rdma_verbs.h>

#include <new>

#include "abi/rdmacm/ids.h"

namespace weft::abi {
namespace {

void destroy_cqs(rdma_cm_id& id) {
  if (id.send_cq != nullptr && id.send_cq != id.recv_cq) ibv_destroy_cq(id.send_cq);
  if (id.recv_cq != nullptr) ibv_destroy_cq(id.recv_cq);
  id.send_cq = id.recv_cq = nullptr;
  if (id.send_cq_channel != nullptr && id.send_cq_channel != id.recv_cq_channel) {
    ibv_destroy_comp_channel(id.send_cq_channel);
  }
  if (id.recv_cq_channel != nullptr) ibv_destroy_comp_channel(id.recv_cq_channel);
  id.send_cq_channel = id.recv_cq_channel = nullptr;
}

bool create_cq(rdma_cm_id& id, uint32_t size, ibv_comp_channel*& channel, ibv_cq*& cq) {
  if (size == 0) return true;
  channel = ibv_create_comp_channel(id.verbs);
  if (channel == nullptr) return false;
  cq = ibv_create_cq(id.verbs, static_cast<int>(size), &id, channel, 0);
  return cq != nullptr;
}

// What the program left to the library. False with errno.
bool create_cqs(rdma_cm_id& id, uint32_t send_size, uint32_t recv_size) {
  if (create_cq(id, recv_size, id.recv_cq_channel, id.recv_cq) &&
      create_cq(id, send_size, id.send_cq_channel, id.send_cq)) {
    return true;
  }
  const int why = errno;
  destroy_cqs(id);
  errno = why;
  return false;
}

int to_state(rdma_cm_id& id, ibv_qp& qp, verbs::QpState state) {
  verbs::QpAttributes a;
  uint32_t mask = 0;
  const auto type = static_cast<verbs::QpType>(qp.qp_type);
  if (const int e = object(&id).core.queue_pair_attributes(state, type, a, mask); e != 0) return e;
  ibv_qp_attr attr{};
  the_core().to_qp_attr(a, attr);
  return ibv_modify_qp(&qp, &attr, static_cast<int>(mask));
}

// As far as it gets without a peer: one of UD needs none.
int begin(rdma_cm_id& id, ibv_qp& qp) {
  int error = to_state(id, qp, verbs::QpState::init);
  for (const auto state : {verbs::QpState::rtr, verbs::QpState::rts}) {
    if (error == 0 && qp.qp_type == IBV_QPT_UD) error = to_state(id, qp, state);
  }
  return error;
}

// A queue pair that an Id of a request is to have.
ibv_qp* create_near(rdma_cm_id& id, ibv_qp_init_attr_ex& attr) {
  const cm::Id& core = object(&id).core;
  core.prefer_home(true);
  ibv_qp* qp = ibv_create_qp_ex(id.verbs, &attr);
  const int why = errno;
  core.prefer_home(false);
  errno = why;
  return qp;
}

}  // namespace
}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* qp_attr, int* qp_attr_mask) try {
  verbs::QpAttributes a;
  uint32_t mask = 0;
  const auto state = static_cast<verbs::QpState>(qp_attr->qp_state);
  const int own = id->qp != nullptr ? id->qp->qp_type : id->qp_type;
  const auto type = static_cast<verbs::QpType>(own);
  if (const int error = object(id).core.queue_pair_attributes(state, type, a, mask); error != 0) {
    return refuse(error);
  }
  *qp_attr = {};
  the_core().to_qp_attr(a, *qp_attr);
  *qp_attr_mask = static_cast<int>(mask);
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) try {
  if (id->qp != nullptr || id->verbs == nullptr) {
    return refuse("rdma_create_qp",
                  id->qp != nullptr ? "the id has a queue pair already"
                                    : "the id is on no device: resolve or bind its address first");
  }
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
    attr->pd = id->pd;
  } else if (id->verbs != attr->pd->context) {
    return refuse("rdma_create_qp", "the pd is of another ibv_context than the id (id->verbs)");
  }
  const auto differ = [](const ibv_cq* own, const ibv_cq* given) {
    return own != nullptr && given != nullptr && own != given;
  };
  if (differ(id->recv_cq, attr->recv_cq) || differ(id->send_cq, attr->send_cq)) {
    return refuse("rdma_create_qp", "the id has completion queues, and others are given");
  }
  const bool has_send = attr->send_cq != nullptr || id->send_cq != nullptr;
  const bool has_recv = attr->recv_cq != nullptr || id->recv_cq != nullptr;
  if (!create_cqs(*id, has_send ? 0 : attr->cap.max_send_wr,
                  has_recv ? 0 : attr->cap.max_recv_wr)) {
    return -1;
  }
  if (attr->send_cq == nullptr) attr->send_cq = id->send_cq;
  if (attr->recv_cq == nullptr) attr->recv_cq = id->recv_cq;
  if (id->srq != nullptr && attr->srq == nullptr) attr->srq = id->srq;
  ibv_qp* qp = create_near(*id, *attr);
  const int error = qp == nullptr ? errno : begin(*id, *qp);
  if (qp == nullptr || error != 0) {
    if (qp != nullptr) ibv_destroy_qp(qp);
    destroy_cqs(*id);
    return refuse(error);
  }
  id->pd = qp->pd;
  id->qp = qp;
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  ibv_qp_init_attr_ex attr{.qp_context = qp_init_attr->qp_context,
                           .send_cq = qp_init_attr->send_cq,
                           .recv_cq = qp_init_attr->recv_cq,
                           .srq = qp_init_attr->srq,
                           .cap = qp_init_attr->cap,
                           .qp_type = qp_init_attr->qp_type,
                           .sq_sig_all = qp_init_attr->sq_sig_all,
                           .comp_mask = IBV_QP_INIT_ATTR_PD,
                           .pd = pd != nullptr ? pd : id->pd};
  const int ret = rdma_create_qp_ex(id, &attr);
  qp_init_attr->send_cq = attr.send_cq;
  qp_init_attr->recv_cq = attr.recv_cq;
  qp_init_attr->srq = attr.srq;
  qp_init_attr->cap = attr.cap;
  return ret;
}

void rdma_destroy_qp(rdma_cm_id* id) {
  // Programs leave their groups later, or never.
  detach_from_groups(object(id));
  ibv_destroy_qp(id->qp);
  id->qp = nullptr;
  destroy_cqs(*id);
}

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) {
  if (id->verbs == nullptr || (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0) {
    return refuse(EINVAL);
  }
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    attr->pd = id->pd;
    attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
  }
  // Extended reliable connections (IBV_SRQT_XRC) are refused where the queue is made.
  ibv_srq* srq = ibv_create_srq_ex(id->verbs, attr);
  if (srq == nullptr) return -1;
  if (id->pd == nullptr) id->pd = attr->pd;
  id->srq = srq;
  return 0;
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq_init_attr_ex ex{
      .srq_context = attr->srq_context,
      .attr = attr->attr,
      .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
      .srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
      .pd = pd};
  const int ret = rdma_create_srq_ex(id, &ex);
  attr->attr = ex.attr;
  return ret;
}

void rdma_destroy_srq(rdma_cm_id* id) {
  ibv_destroy_srq(id->srq);
  id->srq = nullptr;
  destroy_cqs(*id);
}

}  // extern "C"
