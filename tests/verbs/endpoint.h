// Queue pairs on the public interface, with owners, for tests. A failure of set-up throws, and
// GoogleTest reports it.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft::test {

inline void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}
inline void check_errno(int error, const char* what) {
  if (error != 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(error));
}

template <class T, auto Free>
struct Freer {
  void operator()(T* p) const { Free(p); }
};
using ContextPtr = std::unique_ptr<ibv_context, Freer<ibv_context, ibv_close_device>>;
using PdPtr = std::unique_ptr<ibv_pd, Freer<ibv_pd, ibv_dealloc_pd>>;
using MrPtr = std::unique_ptr<ibv_mr, Freer<ibv_mr, ibv_dereg_mr>>;
using CqPtr = std::unique_ptr<ibv_cq, Freer<ibv_cq, ibv_destroy_cq>>;
using QpPtr = std::unique_ptr<ibv_qp, Freer<ibv_qp, ibv_destroy_qp>>;
using SrqPtr = std::unique_ptr<ibv_srq, Freer<ibv_srq, ibv_destroy_srq>>;
using ChannelPtr =
    std::unique_ptr<ibv_comp_channel, Freer<ibv_comp_channel, ibv_destroy_comp_channel>>;

inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

inline ContextPtr open_weft() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  check(list != nullptr && count == 1, "ibv_get_device_list");
  ContextPtr c{ibv_open_device(list[0])};
  ibv_free_device_list(list);
  check(c != nullptr, "ibv_open_device");
  return c;
}

// A device with a protection domain.
struct Adapter {
  ContextPtr context = open_weft();
  PdPtr pd{ibv_alloc_pd(context.get())};

  MrPtr reg(void* p, size_t n, int access = kAllAccess) const {
    MrPtr mr{ibv_reg_mr(pd.get(), p, n, access)};
    check(mr != nullptr, "ibv_reg_mr");
    return mr;
  }
  CqPtr cq(int entries, ibv_comp_channel* channel = nullptr) const {
    CqPtr q{ibv_create_cq(context.get(), entries, nullptr, channel, 0)};
    check(q != nullptr, "ibv_create_cq");
    return q;
  }
};

struct QpOptions {
  uint32_t depth = 64;
  uint32_t segments = 4;
  uint32_t inline_bytes = 64;
  ibv_srq* srq = nullptr;
  uint8_t rnr_retry = 7;
  uint8_t timeout = 14;  // 4.096 us << timeout, so often as there are retries
  uint8_t reads = 16;
  ibv_qp_type type = IBV_QPT_RC;
  uint32_t create_flags = 0;  // ibv_qp_create_flags
};

inline constexpr uint32_t kQKey = 0x11223344;  // of all UD queue pairs here

inline QpPtr make_qp(const Adapter& a, ibv_cq* cq, const QpOptions& o = {}) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = cq;
  init.srq = o.srq;
  init.qp_type = o.type;
  init.cap = {o.depth, o.depth, o.segments, o.segments, o.inline_bytes};
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  init.pd = a.pd.get();
  init.create_flags = o.create_flags;
  QpPtr qp{ibv_create_qp_ex(a.pd->context, &init)};
  check(qp != nullptr, "ibv_create_qp");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = kAllAccess;
  attr.qkey = kQKey;
  const int rights = o.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  check_errno(
      ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | rights),
      "INIT");
  return qp;
}

inline void to_rtr(ibv_qp* qp, uint32_t peer_qpn, const ibv_gid& peer, const QpOptions& o = {}) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer_qpn;
  attr.max_dest_rd_atomic = o.reads;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = peer;
  attr.ah_attr.grh.hop_limit = 1;
  attr.ah_attr.port_num = 1;
  int mask = IBV_QP_STATE;
  if (qp->qp_type != IBV_QPT_UD) {
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  }
  if (qp->qp_type == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  check_errno(ibv_modify_qp(qp, &attr, mask), "RTR");
}

inline void to_rts(ibv_qp* qp, const QpOptions& o = {}) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = o.timeout;
  attr.retry_cnt = 7;
  attr.rnr_retry = o.rnr_retry;
  attr.max_rd_atomic = o.reads;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (qp->qp_type == IBV_QPT_RC) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  check_errno(ibv_modify_qp(qp, &attr, mask), "RTS");
}

inline ibv_gid own_gid(const Adapter& a) {
  ibv_gid gid;
  check_errno(ibv_query_gid(a.context.get(), 1, 0, &gid), "ibv_query_gid");
  return gid;
}

// Two queue pairs of this process, connected with each other.
inline void connect(ibv_qp* a, const ibv_gid& gid_a, ibv_qp* b, const ibv_gid& gid_b,
                    const QpOptions& o = {}) {
  to_rtr(a, b->qp_num, gid_b, o);
  to_rtr(b, a->qp_num, gid_a, o);
  to_rts(a, o);
  to_rts(b, o);
}

// Polls until `count` completions are there. Fewer when ten seconds pass without one.
inline std::vector<ibv_wc> collect(ibv_cq* cq, size_t count) {
  std::vector<ibv_wc> all;
  auto last = std::chrono::steady_clock::now();
  while (all.size() < count) {
    ibv_wc wc[16];
    const int n = ibv_poll_cq(cq, 16, wc);
    check(n >= 0, "ibv_poll_cq");
    if (n > 0) {
      all.insert(all.end(), wc, wc + n);
      last = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - last > std::chrono::seconds{10}) {
      break;
    }
  }
  return all;
}

inline int post_send(ibv_qp* qp, ibv_send_wr wr, std::vector<ibv_sge> sges = {}) {
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &wr, &bad);
}

inline int post_recv(ibv_qp* qp, uint64_t wr_id, std::vector<ibv_sge> sges) {
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp, &wr, &bad);
}

inline ibv_sge sge(const void* p, uint64_t n, const ibv_mr* mr) {
  return {reinterpret_cast<uintptr_t>(p), static_cast<uint32_t>(n), mr->lkey};
}

}  // namespace weft::test
