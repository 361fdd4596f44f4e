// An open device, and what tests need around it. The tests are linked to the built libibverbs.so.1
// and use nothing but Debian's header, like any program.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/abi/sleeper.h"

// For calls that return an errno value, and for those that return an object.
#define EXPECT_REFUSED(error, call) EXPECT_EQ(call, error)
#define EXPECT_NO_OBJECT(error, call)           \
  do {                                          \
    errno = 0;                                  \
    EXPECT_EQ((call), nullptr);                 \
    EXPECT_EQ(errno, error) << strerror(errno); \
  } while (false)

namespace weft::test {

struct Release {
  void operator()(ibv_context* c) const { EXPECT_EQ(ibv_close_device(c), 0); }
  void operator()(ibv_pd* p) const { EXPECT_EQ(ibv_dealloc_pd(p), 0); }
  void operator()(ibv_mr* m) const { EXPECT_EQ(ibv_dereg_mr(m), 0); }
  void operator()(ibv_mw* m) const { EXPECT_EQ(ibv_dealloc_mw(m), 0); }
  void operator()(ibv_ah* a) const { EXPECT_EQ(ibv_destroy_ah(a), 0); }
  void operator()(ibv_comp_channel* c) const { EXPECT_EQ(ibv_destroy_comp_channel(c), 0); }
  void operator()(ibv_cq* c) const { EXPECT_EQ(ibv_destroy_cq(c), 0); }
  void operator()(ibv_cq_ex* c) const { EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(c)), 0); }
  void operator()(ibv_srq* s) const { EXPECT_EQ(ibv_destroy_srq(s), 0); }
  void operator()(ibv_qp* q) const { EXPECT_EQ(ibv_destroy_qp(q), 0); }
};
template <class T>
using Owned = std::unique_ptr<T, Release>;

inline Owned<ibv_context> open_device() {
  ibv_device** list = ibv_get_device_list(nullptr);
  Owned<ibv_context> context{ibv_open_device(list[0])};
  ibv_free_device_list(list);
  return context;
}

// Bytes that differ from their neighbours and from those of another seed.
inline void fill(uint8_t* to, size_t n, unsigned seed) {
  for (size_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>((i * 7 + i / 256 + seed * 31) & 0xff);
}
inline bool filled(const uint8_t* from, size_t n, unsigned seed) {
  std::vector<uint8_t> expected(n);
  fill(expected.data(), n, seed);
  return std::memcmp(from, expected.data(), n) == 0;
}

class DeviceTest : public testing::Test {
 protected:
  Owned<ibv_context> context = open_device();
  Owned<ibv_pd> pd{ibv_alloc_pd(context.get())};
};

inline ibv_qp_init_attr rc_attributes(ibv_cq* cq) {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {.max_send_wr = 8,
              .max_recv_wr = 8,
              .max_send_sge = 4,
              .max_recv_sge = 4,
              .max_inline_data = 64};
  attr.qp_type = IBV_QPT_RC;
  return attr;
}

constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

inline ibv_qp_attr init_attributes() {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                      IBV_ACCESS_REMOTE_ATOMIC;
  return a;
}
// To a queue pair on this host, by the first GID.
inline ibv_qp_attr rtr_attributes(ibv_context* context, uint32_t peer) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = peer;
  a.rq_psn = 0x123456;
  a.max_dest_rd_atomic = 4;
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  EXPECT_EQ(ibv_query_gid(context, 1, 0, &a.ah_attr.grh.dgid), 0);
  return a;
}
inline ibv_qp_attr rts_attributes() {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 14;
  a.retry_cnt = 7;
  a.rnr_retry = 7;
  a.sq_psn = 0x123456;
  a.max_rd_atomic = 4;
  return a;
}
inline int to_init(ibv_qp* qp) {
  ibv_qp_attr a = init_attributes();
  return ibv_modify_qp(qp, &a, kInitMask);
}
inline int to_rtr(ibv_qp* qp, uint32_t peer) {
  ibv_qp_attr a = rtr_attributes(qp->context, peer);
  return ibv_modify_qp(qp, &a, kRtrMask);
}
inline int to_rts(ibv_qp* qp) {
  ibv_qp_attr a = rts_attributes();
  return ibv_modify_qp(qp, &a, kRtsMask);
}
inline int to_state(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr a{};
  a.qp_state = state;
  return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

// The next completion; status GENERAL_ERR and wr_id ~0 when none comes for ten seconds.
inline ibv_wc next_completion(ibv_cq* cq) {
  ibv_wc wc{};
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (std::chrono::steady_clock::now() < until) {
    const int n = ibv_poll_cq(cq, 1, &wc);
    if (n == 1) return wc;
    if (n < 0) break;
  }
  wc.status = IBV_WC_GENERAL_ERR;
  wc.wr_id = ~uint64_t{0};
  return wc;
}

// Runs `call` in a thread; once that sleeps, does what wakes it.
template <class Call, class Wake>
void expect_waits(Call&& call, Wake&& wake) {
  std::atomic<pid_t> thread{0};
  std::atomic<bool> done{false};
  std::thread caller{[&] {
    thread.store(gettid());
    call();
    done.store(true);
  }};
  EXPECT_TRUE(falls_asleep(thread, done)) << "it did not wait";
  wake();
  caller.join();
}

// Two connected queue pairs of one process, each with a completion queue and 64 KiB of registered
// memory.
class PairTest : public DeviceTest {
 protected:
  static constexpr size_t kMemory = 65536;
  struct Side {
    Owned<ibv_cq> cq;
    std::vector<uint8_t> memory;
    Owned<ibv_mr> mr;
    Owned<ibv_qp> qp;

    ibv_sge sge(size_t offset, uint32_t length) const {
      return {.addr = address(offset), .length = length, .lkey = mr->lkey};
    }
    uint64_t address(size_t offset = 0) const {
      return reinterpret_cast<uintptr_t>(memory.data()) + offset;
    }
    int post_recv(uint64_t wr_id, ibv_sge s) const {
      ibv_recv_wr wr{.wr_id = wr_id, .next = nullptr, .sg_list = &s, .num_sge = 1};
      ibv_recv_wr* bad = nullptr;
      return ibv_post_recv(qp.get(), &wr, &bad);
    }
    int post(ibv_send_wr wr) const {
      ibv_send_wr* bad = nullptr;
      return ibv_post_send(qp.get(), &wr, &bad);
    }
  };

  void SetUp() override {
    for (Side* s : {&a, &b}) {
      s->cq.reset(ibv_create_cq(context.get(), 64, nullptr, nullptr, 0));
      s->memory.resize(kMemory);
      constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
      s->mr.reset(ibv_reg_mr(pd.get(), s->memory.data(), kMemory, kAll));
      s->qp.reset(make_qp(s->cq.get()));
      ASSERT_NE(s->qp, nullptr);
      ASSERT_EQ(to_init(s->qp.get()), 0);
    }
    ASSERT_EQ(to_rtr(a.qp.get(), b.qp->qp_num), 0);
    ASSERT_EQ(to_rtr(b.qp.get(), a.qp->qp_num), 0);
    ASSERT_EQ(to_rts(a.qp.get()), 0);
    ASSERT_EQ(to_rts(b.qp.get()), 0);
  }

  // With the builder API, too.
  ibv_qp* make_qp(ibv_cq* cq) {
    const ibv_qp_init_attr plain = rc_attributes(cq);
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = plain.cap;
    attr.qp_type = IBV_QPT_RC;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd.get();
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
                          IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_BIND_MW |
                          IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                          IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV;
    return ibv_create_qp_ex(context.get(), &attr);
  }

  Side a;
  Side b;
};

}  // namespace weft::test
