// A queue pair of type RD with memory for what it sends and for what its peers write and read.
#pragma once

#include <weft/rd.h>

#include <functional>

#include "tests/verbs/endpoint.h"

namespace weft::test {

using AhPtr = std::unique_ptr<ibv_ah, Freer<ibv_ah, ibv_destroy_ah>>;

struct RdOptions {
  ibv_srq* srq = nullptr;
  uint8_t rnr_retry = 7;
  uint32_t depth = 256;
  uint64_t operations = WEFT_RD_SEND_OPS;
};

inline void make_ready_to_receive(ibv_qp* qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kQKey;
  check_errno(
      ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
      "INIT");
  attr.qp_state = IBV_QPS_RTR;
  check_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
}

struct RdSide {
  explicit RdSide(size_t bytes = 1 << 16, const RdOptions& o = {})
      : memory(bytes),
        mr(a.reg(memory.data(), memory.size())),
        cq(a.cq(static_cast<int>(2 * o.depth))),
        qp(create(o)),
        ex(ibv_qp_to_qp_ex(qp.get())) {
    check(ex != nullptr, "ibv_qp_to_qp_ex");
    make_ready_to_receive(qp.get());
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.rnr_retry = o.rnr_retry;
    check_errno(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY),
                "RTS");
    ah = to(own_gid(a));
  }
  QpPtr create(const RdOptions& o) const {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = cq.get();
    init.srq = o.srq;
    init.cap = {o.depth, o.depth, 4, 4, 64};
    init.pd = a.pd.get();
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = o.operations;
    QpPtr made{weft_rd_create_qp(a.context.get(), &init)};
    check(made != nullptr, "weft_rd_create_qp");
    return made;
  }
  AhPtr to(const ibv_gid& gid) const {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.dgid = gid;
    AhPtr made{ibv_create_ah(a.pd.get(), &attr)};
    check(made != nullptr, "ibv_create_ah");
    return made;
  }

  // One request to a queue pair of this host: `operation` calls ibv_wr_send() or another.
  int post(uint32_t qpn, uint64_t id, size_t at, size_t n,
           const std::function<void(ibv_qp_ex*)>& operation, uint32_t key = kQKey,
           unsigned flags = IBV_SEND_SIGNALED) const {
    ibv_wr_start(ex);
    ex->wr_id = id;
    ex->wr_flags = flags;
    operation(ex);
    ibv_wr_set_ud_addr(ex, ah.get(), qpn, key);
    ibv_wr_set_sge(ex, mr->lkey, reinterpret_cast<uintptr_t>(&memory[at]),
                   static_cast<uint32_t>(n));
    return ibv_wr_complete(ex);
  }
  int send(const RdSide& other, uint64_t id, size_t at, size_t n) const {
    return post(other.qp->qp_num, id, at, n, ibv_wr_send);
  }
  void receive(uint64_t id, size_t at, size_t n) const {
    check_errno(post_recv(qp.get(), id, {sge(&memory[at], n, mr.get())}), "post_recv");
  }
  uint64_t address(size_t at = 0) const { return reinterpret_cast<uintptr_t>(&memory[at]); }
  void fill(size_t at, size_t n, uint8_t seed) {
    for (size_t i = 0; i < n; ++i) memory[at + i] = byte_of(i, seed);
  }
  bool holds(size_t at, size_t n, uint8_t seed) const {
    for (size_t i = 0; i < n; ++i) {
      if (memory[at + i] != byte_of(i, seed)) return false;
    }
    return true;
  }
  static uint8_t byte_of(size_t i, uint8_t seed) {
    return static_cast<uint8_t>(i * 7 + (i >> 8) * 3 + (i >> 16) + seed);
  }
  // The next completion alone. Throws where none comes within 10 s.
  ibv_wc next() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    ibv_wc wc{};
    int n = 0;
    while ((n = ibv_poll_cq(cq.get(), 1, &wc)) == 0 && std::chrono::steady_clock::now() < until) {
    }
    check(n == 1, "a completion");
    return wc;
  }
  bool silent() const {
    ibv_wc none;
    return ibv_poll_cq(cq.get(), 1, &none) == 0;
  }

  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
  ibv_qp_ex* ex;
  AhPtr ah;
};

}  // namespace weft::test
