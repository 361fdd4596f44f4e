// A request at fault of UC and UD (InfiniBand 10.3.1.6, SQE): it fails, those behind it are
// flushed, receives go on, and the program goes back to RTS.

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

constexpr size_t kEach = 100;
constexpr size_t kGrh = 40;
constexpr uint32_t kNoKey = 0x7ffffff0;

struct Party {
  explicit Party(ibv_qp_type type) : qp(make_qp(a, cq.get(), {.type = type})) {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
  }
  // Where message `i` comes to; of UD behind its GRH.
  uint8_t* place(uint64_t i) { return &memory[8192 + i * 256]; }
  int receive(uint64_t i) {
    return post_recv(qp.get(), i, {sge(place(i), kGrh + kEach, mr.get())});
  }
  ibv_qp_state state() const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    check_errno(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
    EXPECT_EQ(attr.cur_qp_state, attr.qp_state);
    return attr.qp_state;
  }
  int to_state(ibv_qp_state to, int mask = 0, ibv_qp_state now = IBV_QPS_SQE) {
    ibv_qp_attr attr{};
    attr.qp_state = to;
    attr.cur_qp_state = now;
    return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | mask);
  }
  ibv_wc one() {
    const auto done = collect(cq.get(), 1);
    check(done.size() == 1, "a completion");
    return done[0];
  }
  bool quiet() {
    ibv_wc wc;
    pollfd p{.fd = a.context->async_fd, .events = POLLIN, .revents = 0};
    return ibv_poll_cq(cq.get(), 1, &wc) == 0 && ::poll(&p, 1, 0) == 0;
  }

  const Adapter a;
  std::vector<uint8_t> memory = std::vector<uint8_t>(16384);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(64);
  const QpPtr qp;
};

class SendError : public testing::TestWithParam<ibv_qp_type> {
 protected:
  SendError() {
    if (ud()) {
      for (Party* p : {&a, &b}) {
        to_rtr(p->qp.get(), 0, {});
        to_rts(p->qp.get());
      }
      ibv_ah_attr attr{};
      attr.is_global = 1;
      attr.grh.dgid = own_gid(b.a);
      attr.port_num = 1;
      to_b.reset(ibv_create_ah(a.a.pd.get(), &attr));
      to_a.reset(ibv_create_ah(b.a.pd.get(), &attr));
    } else {
      connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), {.type = IBV_QPT_UC});
    }
  }
  static bool ud() { return GetParam() == IBV_QPT_UD; }

  // Message `id` of the sender's memory; with another key it is at fault.
  int send(Party& from, uint64_t id, uint32_t key = 0, size_t length = kEach) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    Party& to = &from == &a ? b : a;
    if (ud()) {
      wr.wr.ud = {.ah = (&from == &a ? to_b : to_a).get(),
                  .remote_qpn = to.qp->qp_num,
                  .remote_qkey = kQKey};
    }
    ibv_sge s = sge(&from.memory[id * kEach], length, from.mr.get());
    if (key != 0) s.lkey = key;
    return post_send(from.qp.get(), wr, {s});
  }
  // Sends message `id`, which arrives in receive `slot`.
  void exchange(Party& from, uint64_t id, uint64_t slot) {
    Party& to = &from == &a ? b : a;
    ASSERT_EQ(send(from, id), 0);
    const ibv_wc sent = from.one();
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS) << ibv_wc_status_str(sent.status);
    EXPECT_EQ(sent.wr_id, id);
    const ibv_wc came = to.one();
    EXPECT_EQ(came.status, IBV_WC_SUCCESS) << ibv_wc_status_str(came.status);
    EXPECT_EQ(came.wr_id, slot);
    EXPECT_TRUE(std::equal(&from.memory[id * kEach], &from.memory[(id + 1) * kEach],
                           to.place(slot) + (ud() ? kGrh : 0)));
  }
  // A request at fault with one before and one behind it.
  void fail(uint64_t slot) {
    ASSERT_EQ(b.receive(slot), 0);
    exchange(a, 1, slot);
    ASSERT_EQ(send(a, 2, kNoKey), 0);
    ASSERT_EQ(send(a, 3), 0);
    const auto done = collect(a.cq.get(), 2);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[0].wr_id, 2U);
    EXPECT_EQ(done[0].status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(done[1].wr_id, 3U);
    EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(a.state(), IBV_QPS_SQE);
  }

  Party a{GetParam()};
  Party b{GetParam()};
  std::unique_ptr<ibv_ah, Freer<ibv_ah, ibv_destroy_ah>> to_a, to_b;
};
INSTANTIATE_TEST_SUITE_P(Types, SendError, testing::Values(IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& p) { return p.param == IBV_QPT_UC ? "Uc" : "Ud"; });

TEST_P(SendError, flushes_requests_and_leaves_receives_alone) {
  ASSERT_EQ(a.receive(0), 0);
  ASSERT_EQ(a.receive(1), 0);
  fail(0);
  EXPECT_TRUE(a.quiet()) << "no event, and no receive flushed";
  // What is posted later is flushed, too.
  ASSERT_EQ(send(a, 4), 0);
  EXPECT_EQ(a.one().status, IBV_WC_WR_FLUSH_ERR);
  // What comes is received, in receives posted before and after.
  ASSERT_EQ(a.receive(2), 0);
  for (uint64_t slot = 0; slot < 3; ++slot) exchange(b, 5 + slot, slot);
  EXPECT_EQ(a.state(), IBV_QPS_SQE);
}

TEST_P(SendError, ends_with_rts) {
  fail(0);
  EXPECT_EQ(a.to_state(IBV_QPS_SQD), EINVAL);
  EXPECT_EQ(a.to_state(IBV_QPS_RTR), EINVAL);
  EXPECT_EQ(a.to_state(IBV_QPS_RTS, IBV_QP_CUR_STATE, IBV_QPS_RTS), EINVAL) << "it is SQE";
  EXPECT_EQ(a.to_state(IBV_QPS_RTS, IBV_QP_SQ_PSN), EINVAL);
  EXPECT_EQ(a.state(), IBV_QPS_SQE);
  ASSERT_EQ(a.to_state(IBV_QPS_RTS, IBV_QP_CUR_STATE), 0);
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
  for (uint64_t slot = 1; slot < 6; ++slot) {
    ASSERT_EQ(b.receive(slot), 0);
    exchange(a, slot + 7, slot);
  }
  // As often as it likes.
  fail(6);
  ASSERT_EQ(a.to_state(IBV_QPS_RTS), 0);
  ASSERT_EQ(b.receive(7), 0);
  exchange(a, 9, 7);
  ASSERT_EQ(a.receive(0), 0);
  exchange(b, 10, 0);
}

TEST_P(SendError, ends_with_err) {
  ASSERT_EQ(a.receive(5), 0);
  fail(0);
  ASSERT_EQ(a.to_state(IBV_QPS_ERR), 0);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
  const ibv_wc wc = a.one();
  EXPECT_EQ(wc.wr_id, 5U);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_P(SendError, ends_with_reset) {
  ASSERT_EQ(a.receive(5), 0);
  fail(0);
  ASSERT_EQ(a.to_state(IBV_QPS_RESET), 0);
  EXPECT_EQ(a.state(), IBV_QPS_RESET);
  EXPECT_TRUE(a.quiet());
}

// A UC message may be longer than the link carries, one of UD not.
class SendErrorOfUd : public SendError {};
INSTANTIATE_TEST_SUITE_P(Type, SendErrorOfUd, testing::Values(IBV_QPT_UD));

TEST_P(SendErrorOfUd, a_message_too_long_for_the_link_is_one) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud = {.ah = to_b.get(), .remote_qpn = b.qp->qp_num, .remote_qkey = kQKey};
  std::vector<uint8_t> large(70'000);
  const MrPtr mr = a.a.reg(large.data(), large.size());
  ASSERT_EQ(post_send(a.qp.get(), wr, {sge(large.data(), large.size(), mr.get())}), 0);
  EXPECT_EQ(a.one().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_SQE);
}

class SendErrorOfUc : public SendError {};
INSTANTIATE_TEST_SUITE_P(Type, SendErrorOfUc, testing::Values(IBV_QPT_UC));

// The peer writes into memory of a queue pair in SQE, and reads it.
TEST_P(SendErrorOfUc, does_not_stop_the_peers_writes_and_reads) {
  fail(0);
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {reinterpret_cast<uintptr_t>(a.place(9)), a.mr->rkey};
    const size_t local = opcode == IBV_WR_RDMA_WRITE ? 1000 : 5000;
    ASSERT_EQ(post_send(b.qp.get(), wr, {sge(&b.memory[local], 200, b.mr.get())}), 0);
    EXPECT_EQ(b.one().status, IBV_WC_SUCCESS);
  }
  EXPECT_TRUE(std::equal(&b.memory[1000], &b.memory[1200], a.place(9)));
  EXPECT_TRUE(std::equal(&b.memory[1000], &b.memory[1200], &b.memory[5000]));
}

}  // namespace
}  // namespace weft::test
