// Queue pairs of type RD (spec/wdp-rd 6) on the public interface.

#include <gtest/gtest.h>

#include <arpa/inet.h>

#include <thread>

#include "tests/support/counted.h"
#include "tests/verbs/own_process.h"
#include "tests/verbs/rd/rd_side.h"

namespace weft::test {
namespace {

constexpr size_t kHalf = 1 << 15;

TEST(Rd, SendsOfEverySize) {
  RdSide a{size_t{8} << 20};
  RdSide b{size_t{8} << 20};
  uint8_t seed = 1;
  for (const size_t n : {size_t{0}, size_t{1}, size_t{1424}, size_t{65'456}, size_t{65'457},
                         size_t{1} << 20, (size_t{8} << 20) - 3}) {
    a.fill(0, n, ++seed);
    b.receive(7, 0, b.memory.size());
    ASSERT_EQ(a.send(b, 5, 0, n), 0);
    const ibv_wc in = b.next();
    EXPECT_EQ(in.status, IBV_WC_SUCCESS) << n;
    EXPECT_EQ(in.opcode, IBV_WC_RECV);
    EXPECT_EQ(in.wr_id, 7U);
    EXPECT_EQ(in.byte_len, n);
    EXPECT_EQ(in.src_qp, a.qp->qp_num);
    EXPECT_EQ(in.wc_flags, 0U);  // no GRH
    const ibv_wc out = a.next();
    EXPECT_EQ(out.status, IBV_WC_SUCCESS) << n;
    EXPECT_EQ(out.opcode, IBV_WC_SEND);
    EXPECT_EQ(out.wr_id, 5U);
    EXPECT_TRUE(b.holds(0, n, seed)) << n;
  }
}

TEST(Rd, ImmediateDataAndInlineData) {
  RdSide a;
  RdSide b;
  b.receive(1, 0, 100);
  ASSERT_EQ(
      a.post(b.qp->qp_num, 2, 0, 10, [](ibv_qp_ex* qp) { ibv_wr_send_imm(qp, htonl(0xcafe)); }), 0);
  const ibv_wc in = b.next();
  EXPECT_EQ(in.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(ntohl(in.imm_data), 0xcafeU);
  b.receive(3, 0, 100);
  char text[] = "inline";
  ibv_wr_start(a.ex);
  a.ex->wr_id = 4;
  a.ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(a.ex);
  ibv_wr_set_inline_data(a.ex, text, sizeof text);
  ibv_wr_set_ud_addr(a.ex, a.ah.get(), b.qp->qp_num, kQKey);
  ASSERT_EQ(ibv_wr_complete(a.ex), 0);
  EXPECT_EQ(b.next().byte_len, sizeof text);
  EXPECT_STREQ(reinterpret_cast<const char*>(b.memory.data()), "inline");
}

// As UD's.
TEST(Rd, SendsByPostSend) {
  RdSide a;
  RdSide b;
  a.fill(0, 3000, 3);
  b.receive(1, 0, 4000);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud = {.ah = a.ah.get(), .remote_qpn = b.qp->qp_num, .remote_qkey = kQKey};
  ASSERT_EQ(post_send(a.qp.get(), wr, {sge(a.memory.data(), 3000, a.mr.get())}), 0);
  EXPECT_EQ(b.next().byte_len, 3000U);
  EXPECT_TRUE(b.holds(0, 3000, 3));
  // A request of this form has no room for both addresses.
  wr.opcode = IBV_WR_RDMA_WRITE;
  EXPECT_EQ(post_send(a.qp.get(), wr, {sge(a.memory.data(), 3000, a.mr.get())}), EINVAL);
}

TEST(Rd, WritesAndReads) {
  RdSide a{size_t{4} << 20};
  RdSide b{size_t{4} << 20};
  const size_t half = size_t{2} << 20;
  a.fill(0, half, 9);
  const auto write = [&](ibv_qp_ex* qp) { ibv_wr_rdma_write(qp, b.mr->rkey, b.address(half)); };
  ASSERT_EQ(a.post(b.qp->qp_num, 1, 0, half, write), 0);
  EXPECT_EQ(a.next().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(b.holds(half, half, 9));
  EXPECT_TRUE(b.silent());
  const auto read = [&](ibv_qp_ex* qp) { ibv_wr_rdma_read(qp, b.mr->rkey, b.address(half)); };
  ASSERT_EQ(a.post(b.qp->qp_num, 2, half, half, read), 0);
  const ibv_wc done = a.next();
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(done.byte_len, half);
  EXPECT_TRUE(a.holds(half, half, 9));
}

TEST(Rd, AWriteWithImmediateTakesAReceive) {
  RdSide a;
  RdSide b;
  a.fill(0, 5000, 4);
  b.receive(11, 0, 16);
  ASSERT_EQ(a.post(b.qp->qp_num, 1, 0, 5000,
                   [&](ibv_qp_ex* qp) {
                     ibv_wr_rdma_write_imm(qp, b.mr->rkey, b.address(kHalf), htonl(77));
                   }),
            0);
  const ibv_wc in = b.next();
  EXPECT_EQ(in.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(in.wr_id, 11U);
  EXPECT_EQ(in.byte_len, 5000U);
  EXPECT_EQ(ntohl(in.imm_data), 77U);
  EXPECT_TRUE(b.holds(kHalf, 5000, 4));
  EXPECT_EQ(a.next().status, IBV_WC_SUCCESS);
}

TEST(Rd, Atomics) {
  RdSide a;
  RdSide b;
  auto* target = reinterpret_cast<uint64_t*>(b.memory.data());
  const auto* before = reinterpret_cast<const uint64_t*>(a.memory.data());
  *target = 40;
  ASSERT_EQ(a.post(b.qp->qp_num, 1, 0, 8,
                   [&](ibv_qp_ex* qp) { ibv_wr_atomic_fetch_add(qp, b.mr->rkey, b.address(), 2); }),
            0);
  ibv_wc done = a.next();
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(*before, 40U);
  EXPECT_EQ(*target, 42U);
  ASSERT_EQ(
      a.post(b.qp->qp_num, 2, 0, 8,
             [&](ibv_qp_ex* qp) { ibv_wr_atomic_cmp_swp(qp, b.mr->rkey, b.address(), 42, 1000); }),
      0);
  done = a.next();
  EXPECT_EQ(done.opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(*before, 42U);
  EXPECT_EQ(*target, 1000U);
}

// spec/wdp-rd 6.4: it is the request's alone, and what is behind it is served.
TEST(Rd, AnErrorIsThatOfItsRequestAlone) {
  RdSide a;
  RdSide b;
  b.receive(1, 0, 100);
  const auto write = [&](uint32_t rkey, uint64_t to) {
    return [rkey, to](ibv_qp_ex* qp) { ibv_wr_rdma_write(qp, rkey, to); };
  };
  const uint32_t good = b.qp->qp_num;
  ASSERT_EQ(a.post(good, 1, 0, 8, write(b.mr->rkey ^ 1, b.address())), 0);
  ASSERT_EQ(a.post(good, 2, 0, 8, write(b.mr->rkey, b.address() + b.memory.size())), 0);
  ASSERT_EQ(a.post(good, 3, 0, 8,
                   [&](ibv_qp_ex* qp) { ibv_wr_rdma_read(qp, b.mr->rkey ^ 1, b.address()); }),
            0);
  ASSERT_EQ(
      a.post(good, 4, 0, 8,
             [&](ibv_qp_ex* qp) { ibv_wr_atomic_fetch_add(qp, b.mr->rkey, b.address() + 1, 1); }),
      0);
  ASSERT_EQ(a.post(good, 5, 0, 8, ibv_wr_send, kQKey + 1), 0);
  ASSERT_EQ(a.post(good ^ 0x80, 6, 0, 8, ibv_wr_send), 0);
  ASSERT_EQ(a.post(good, 7, 0, 101, ibv_wr_send), 0);  // longer than the receive
  ASSERT_EQ(a.post(good, 8, 0, 100, ibv_wr_send), 0);
  const auto done = collect(a.cq.get(), 8);
  const std::vector<ibv_wc_status> expected = {IBV_WC_REM_ACCESS_ERR,     IBV_WC_REM_ACCESS_ERR,
                                               IBV_WC_REM_ACCESS_ERR,     IBV_WC_REM_OP_ERR,
                                               IBV_WC_REM_INV_RD_REQ_ERR, IBV_WC_REM_INV_RD_REQ_ERR,
                                               IBV_WC_REM_INV_REQ_ERR,    IBV_WC_SUCCESS};
  ASSERT_EQ(done.size(), expected.size());
  for (size_t i = 0; i < done.size(); ++i) {
    EXPECT_EQ(done[i].wr_id, i + 1);
    EXPECT_EQ(done[i].status, expected[i]) << ibv_wc_status_str(done[i].status) << " of " << i + 1;
  }
  EXPECT_EQ(b.next().byte_len, 100U);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(a.qp.get(), &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(init.qp_type, IBV_QPT_DRIVER);
}

// spec/wdp-rd 6.5: the request waits, and no other peer's does.
TEST(Rd, WithoutAReceiveARequestWaits) {
  RdSide a;
  RdSide b;
  RdSide c;
  c.receive(1, 0, 100);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(a.send(b, i, 0, 50), 0);
  ASSERT_EQ(a.send(c, 3, 0, 50), 0);
  EXPECT_EQ(c.next().status, IBV_WC_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  EXPECT_TRUE(a.silent());
  for (uint64_t i = 0; i < 3; ++i) b.receive(10 + i, i * 100, 100);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(b.next().wr_id, 10 + i);
  for (uint64_t i = 0; i < 4; ++i) {
    const ibv_wc done = a.next();
    EXPECT_EQ(done.wr_id, i);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  }
}

TEST(Rd, RnrRetriesEnd) {
  RdSide a{1 << 16, {.rnr_retry = 1}};
  RdSide b;
  ASSERT_EQ(a.send(b, 1, 0, 50), 0);
  EXPECT_EQ(a.next().status, IBV_WC_RNR_RETRY_EXC_ERR);
  b.receive(2, 0, 100);
  ASSERT_EQ(a.send(b, 3, 0, 50), 0);
  EXPECT_EQ(a.next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.next().wr_id, 2U);
}

// Queue pairs of one host that take from one queue.
class SharedReceives {
 public:
  SharedReceives() {
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    srq.reset(ibv_create_srq(side.a.pd.get(), &init));
    check(srq != nullptr, "ibv_create_srq");
  }
  QpPtr queue_pair() const {
    ibv_qp_init_attr_ex ex{};
    ex.send_cq = ex.recv_cq = side.cq.get();
    ex.srq = srq.get();
    ex.cap = {4, 0, 1, 0, 0};
    ex.pd = side.a.pd.get();
    ex.comp_mask = IBV_QP_INIT_ATTR_PD;
    QpPtr qp{weft_rd_create_qp(side.a.context.get(), &ex)};
    check(qp != nullptr, "weft_rd_create_qp");
    make_ready_to_receive(qp.get());
    return qp;
  }
  void post(uint64_t id, size_t n) {
    ibv_sge place = sge(side.memory.data(), n, side.mr.get());
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &place;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    check_errno(ibv_post_srq_recv(srq.get(), &wr, &bad), "ibv_post_srq_recv");
  }

  RdSide side;
  SrqPtr srq;
};

TEST(Rd, ReceivesOfASharedQueue) {
  RdSide a;
  SharedReceives shared;
  const QpPtr qp = shared.queue_pair();
  ASSERT_EQ(a.post(qp->qp_num, 1, 0, 40, ibv_wr_send), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  shared.post(9, 100);
  EXPECT_EQ(shared.side.next().wr_id, 9U);
  EXPECT_EQ(a.next().status, IBV_WC_SUCCESS);
}

// One that was taken for a message too long, or for one that ended, is there for the other queue
// pairs.
TEST(Rd, AReceiveThatWasNotUsedGoesBackToItsSharedQueue) {
  RdSide a;
  SharedReceives shared;
  const QpPtr first = shared.queue_pair();
  const QpPtr second = shared.queue_pair();
  shared.post(9, 100);
  ASSERT_EQ(a.post(first->qp_num, 1, 0, 101, ibv_wr_send), 0);
  EXPECT_EQ(a.next().status, IBV_WC_REM_INV_REQ_ERR);
  ASSERT_EQ(a.post(second->qp_num, 2, 0, 100, ibv_wr_send), 0);
  EXPECT_EQ(shared.side.next().wr_id, 9U);
  EXPECT_EQ(a.next().status, IBV_WC_SUCCESS);
}

// A peer of type UD or RC by datagrams is none.
TEST(Rd, AQueuePairOfAnotherTypeIsNoPeer) {
  RdSide a;
  RdSide b;
  QpPtr ud = make_qp(b.a, b.cq.get(), {.type = IBV_QPT_UD});
  to_rtr(ud.get(), 0, {}, {.type = IBV_QPT_UD});
  ASSERT_EQ(a.post(ud->qp_num, 1, 0, 8, ibv_wr_send), 0);
  EXPECT_EQ(a.next().status, IBV_WC_REM_INV_RD_REQ_ERR);
}

TEST(Rd, AQueuePairThatIsDestroyedAnswersWhatItHas) {
  RdSide a{size_t{8} << 20};
  auto b = std::make_unique<RdSide>(size_t{8} << 20);
  b->receive(1, 0, b->memory.size());
  ASSERT_EQ(a.send(*b, 1, 0, a.memory.size()), 0);
  b.reset();
  EXPECT_EQ(a.next().status, IBV_WC_REM_INV_RD_REQ_ERR);
}

// What one peer has done is not flushed behind what another one has not.
TEST(Rd, WhatWasAnsweredIsNotFlushed) {
  RdSide a;
  RdSide b;
  RdSide c;
  ASSERT_EQ(a.send(b, 1, 0, 10), 0);  // there is no receive
  ASSERT_EQ(a.post(c.qp->qp_num, 2, 64, 8,
                   [&](ibv_qp_ex* qp) {
                     ibv_wr_atomic_fetch_add(qp, c.mr->rkey, c.address(), ~uint64_t{0});
                   }),
            0);
  a.receive(3, 128, 64);
  const volatile uint8_t* const changed = c.memory.data();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (*changed == 0 && std::chrono::steady_clock::now() < until) {
    ASSERT_TRUE(a.silent());
    ASSERT_TRUE(c.silent());
  }
  ASSERT_EQ(c.send(a, 4, 0, 10), 0);
  EXPECT_EQ(a.next().wr_id, 3U) << "the answer came before";
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(a.qp.get(), &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(a.next().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(a.next().status, IBV_WC_SUCCESS);
}

// The rest of a long message is not said any more; who has its number next is heard.
TEST(Rd, AQueuePairThatIsDestroyedLeavesItsMessageUnfinished) {
  RdSide b{size_t{8} << 20};
  b.receive(1, 0, b.memory.size());
  {
    RdSide a{size_t{8} << 20};
    ASSERT_EQ(a.send(b, 1, 0, a.memory.size()), 0);
  }
  RdSide c;
  ASSERT_EQ(c.send(b, 2, 0, 10), 0);
  EXPECT_EQ(c.next().status, IBV_WC_SUCCESS);
}

void many(size_t messages, size_t size, size_t receives) {
  constexpr uint64_t kDepth = 128;
  RdSide a{kDepth * size};
  RdSide b{receives * size};
  for (size_t i = 0; i < receives; ++i) b.receive(i, i * size, size);
  size_t posted = 0;
  size_t complete = 0;
  size_t came = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{100};
  while (came < messages || complete < messages) {
    check(std::chrono::steady_clock::now() < until, "in time");
    for (; posted < messages && posted - complete < kDepth; ++posted) {
      const size_t slot = posted % kDepth;
      a.fill(slot * size, size, static_cast<uint8_t>(posted));
      check_errno(a.send(b, posted, slot * size, size), "send");
    }
    ibv_wc wc[16];
    const int out = ibv_poll_cq(a.cq.get(), 16, wc);
    for (int i = 0; i < out; ++i) {
      check(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
      check(wc[i].wr_id == complete++, "in order");
    }
    const int in = ibv_poll_cq(b.cq.get(), 16, wc);
    for (int i = 0; i < in; ++i) {
      check(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
      check(b.holds(wc[i].wr_id * size, size, static_cast<uint8_t>(came)), "the next one, whole");
      ++came;
      b.receive(wc[i].wr_id, wc[i].wr_id * size, size);
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  check(b.silent(), "no copy of any");
}

class RdFaults : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(RdFaults, AFastSenderAndFewReceives) {
  EXPECT_EXIT(with({}, [] { many(5000, 1000, 3); }), ::testing::ExitedWithCode(0), "");
}

TEST_F(RdFaults, ANetworkThatLosesDoublesAndReorders) {
  EXPECT_EXIT(with({{"WEFT_FAULT", "loss:0.05,duplicate:0.05,reorder:0.1,jitter:200us,seed:5"}},
                   [] {
                     const Counted again("rd_datagrams_repeated");
                     many(2000, 1000, 64);
                     many(30, 200'000, 8);
                     check(!again.grown().empty(), "some were lost");
                   }),
              ::testing::ExitedWithCode(0), "");
}

// Exactly once: the sum is right, and each value was there once.
TEST_F(RdFaults, AtomicsHappenOnceWhateverTheNetworkDoes) {
  EXPECT_EXIT(with({{"WEFT_FAULT", "loss:0.05,duplicate:0.1,reorder:0.1,jitter:200us,seed:7"}},
                   [] {
                     RdSide a;
                     RdSide b;
                     constexpr uint64_t kAll = 2000;
                     std::vector<bool> seen(kAll);
                     uint64_t posted = 0;
                     for (uint64_t done = 0; done < kAll; ++done) {
                       for (; posted < kAll && posted - done < 64; ++posted) {
                         check_errno(a.post(b.qp->qp_num, posted, posted % 64 * 8, 8,
                                            [&](ibv_qp_ex* qp) {
                                              ibv_wr_atomic_fetch_add(qp, b.mr->rkey, b.address(),
                                                                      1);
                                            }),
                                     "post");
                       }
                       const ibv_wc wc = a.next();
                       check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
                       uint64_t value = 0;
                       std::memcpy(&value, &a.memory[done % 64 * 8], sizeof value);
                       check(value < kAll && !seen[value], "a value once");
                       seen[value] = true;
                     }
                     uint64_t sum = 0;
                     std::memcpy(&sum, b.memory.data(), sizeof sum);
                     check(sum == kAll, "each once");
                   }),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
