// Endpoints: an Id with all that belongs to it, made at one go from what rdma_getaddrinfo says.
#include <rdma/rdma_verbs.h>

#include <new>

#include "abi/rdmacm/ids.h"

namespace weft::abi {
namespace {

constexpr int kTimeout = 2000;  // ms

int passive(CmId& id, const rdma_addrinfo& res, ibv_pd* pd, const ibv_qp_init_attr* qp_attr) {
  if (rdma_bind_addr(&id, res.ai_src_addr) != 0) return -1;
  if (pd != nullptr) id.pd = pd;
  if (qp_attr != nullptr) {
    id.request_qp_attr = *qp_attr;
    id.request_qp_attr->qp_type = static_cast<ibv_qp_type>(res.ai_qp_type);
  }
  return 0;
}

int active(CmId& id, const rdma_addrinfo& res, ibv_pd* pd, ibv_qp_init_attr* qp_attr) {
  if (rdma_resolve_addr(&id, res.ai_src_addr, res.ai_dst_addr, kTimeout) != 0 ||
      rdma_resolve_route(&id, kTimeout) != 0) {
    return -1;
  }
  if (qp_attr != nullptr) {
    qp_attr->qp_type = static_cast<ibv_qp_type>(res.ai_qp_type);
    if (rdma_create_qp(&id, pd, qp_attr) != 0) return -1;
  }
  if (res.ai_connect_len > 0) {
    const auto* data = static_cast<const std::byte*>(res.ai_connect);
    id.connect_data.assign(data, data + res.ai_connect_len);
  }
  return 0;
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* res, ibv_pd* pd,
                   ibv_qp_init_attr* qp_init_attr) try {
  rdma_cm_id* fresh = nullptr;
  if (create_id(nullptr, &fresh, nullptr, static_cast<rdma_port_space>(res->ai_port_space),
                static_cast<ibv_qp_type>(res->ai_qp_type)) != 0) {
    return -1;
  }
  CmId& i = object(fresh);
  const int ret = (res->ai_flags & RAI_PASSIVE) != 0 ? passive(i, *res, pd, qp_init_attr)
                                                     : active(i, *res, pd, qp_init_attr);
  if (ret != 0) {
    const int why = errno;
    rdma_destroy_ep(fresh);
    return refuse(why);
  }
  *id = fresh;
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

void rdma_destroy_ep(rdma_cm_id* id) {
  if (id->qp != nullptr) rdma_destroy_qp(id);
  if (id->srq != nullptr) rdma_destroy_srq(id);
  rdma_destroy_id(id);
}

}  // extern "C"
