// The states of a queue pair as programs see them, and the events that tell of them.

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/support/readable_first.h"
#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

// The next event of the device. QP_FATAL with no queue pair when none comes for ten seconds.
ibv_async_event next_event(const Adapter& a) {
  ibv_async_event e{};
  e.event_type = IBV_EVENT_QP_FATAL;
  pollfd p{.fd = a.context->async_fd, .events = POLLIN, .revents = 0};
  if (::poll(&p, 1, 10'000) == 1 && ibv_get_async_event(a.context.get(), &e) == 0) {
    ibv_ack_async_event(&e);
  }
  return e;
}
bool quiet(const Adapter& a) {
  pollfd p{.fd = a.context->async_fd, .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 0) == 0;
}

ibv_qp_state state(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  check_errno(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  return attr.qp_state;
}
int to_state(ibv_qp* qp, ibv_qp_state to, bool tell_when_drained = false) {
  ibv_qp_attr attr{};
  attr.qp_state = to;
  attr.en_sqd_async_notify = tell_when_drained ? 1 : 0;
  const int mask = tell_when_drained ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

// Two queue pairs of this process, with a buffer each.
struct Two {
  explicit Two(bool b_sends = true, int cq_entries = 64)
      : channel(ibv_create_comp_channel(a.context.get())),
        here(4096),
        there(4096),
        from(a.reg(here.data(), here.size())),
        to(b.reg(there.data(), there.size())),
        cq_a(a.cq(cq_entries, channel.get())),
        cq_b(b.cq(64)),
        qp_a(make_qp(a, cq_a.get())),
        qp_b(make_qp(b, cq_b.get())) {
    for (size_t i = 0; i < here.size(); ++i) here[i] = static_cast<uint8_t>(i * 7 + 3);
    to_rtr(qp_a.get(), qp_b->qp_num, own_gid(b));
    to_rtr(qp_b.get(), qp_a->qp_num, own_gid(a));
    to_rts(qp_a.get());
    if (b_sends) to_rts(qp_b.get());
  }
  int send(bool signaled = true) {
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
    return post_send(qp_a.get(), wr, {sge(here.data(), 100, from.get())});
  }
  int send_back() {
    ibv_send_wr wr{};
    wr.wr_id = 2;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    return post_send(qp_b.get(), wr, {sge(there.data(), 100, to.get())});
  }
  Adapter a, b;
  ChannelPtr channel;  // of cq_a
  std::vector<uint8_t> here, there;
  MrPtr from, to;
  CqPtr cq_a, cq_b;
  QpPtr qp_a, qp_b;
};

// InfiniBand 10.3.1.5
TEST(SendQueueDrained, requests_wait_until_rts) {
  Two t;
  ASSERT_EQ(post_recv(t.qp_b.get(), 9, {sge(t.there.data(), 100, t.to.get())}), 0);
  ASSERT_EQ(post_recv(t.qp_a.get(), 8, {sge(t.here.data() + 1000, 100, t.from.get())}), 0);
  ASSERT_EQ(to_state(t.qp_a.get(), IBV_QPS_SQD, true), 0);
  EXPECT_EQ(next_event(t.a).event_type, IBV_EVENT_SQ_DRAINED);
  ASSERT_EQ(t.send(), 0);
  // What comes from there is received, and its completion leaves behind whatever was sent.
  ASSERT_EQ(t.send_back(), 0);
  const auto received = collect(t.cq_a.get(), 1);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].wr_id, 8U);
  const auto sent = collect(t.cq_b.get(), 1);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].wr_id, 2U) << "and not the receive of a message that should wait";
  ASSERT_EQ(to_state(t.qp_a.get(), IBV_QPS_RTS), 0);
  const auto arrived = collect(t.cq_b.get(), 1);
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].wr_id, 9U);
  EXPECT_TRUE(std::equal(t.there.begin(), t.there.begin() + 100, t.here.begin()));
  EXPECT_EQ(collect(t.cq_a.get(), 1).size(), 1U);
  EXPECT_TRUE(quiet(t.a)) << "drained once";
}

TEST(SendQueueDrained, unsignaled_requests_are_waited_for) {
  Two t;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(post_recv(t.qp_b.get(), 9, {sge(t.there.data(), 100, t.to.get())}), 0);
  }
  ASSERT_EQ(t.send(), 0);
  ASSERT_EQ(collect(t.cq_a.get(), 1).size(), 1U) << "they are connected";
  for (int i = 0; i < 4; ++i) ASSERT_EQ(t.send(false), 0);
  ASSERT_EQ(to_state(t.qp_a.get(), IBV_QPS_SQD, true), 0);
  EXPECT_EQ(next_event(t.a).event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(collect(t.cq_b.get(), 5).size(), 5U);
}

// Who hears of the event in another thread, and polls once, finds all of them.
TEST(SendQueueDrained, is_told_when_the_completions_are_there) {
  Two t;
  ASSERT_EQ(post_recv(t.qp_b.get(), 9, {sge(t.there.data(), 100, t.to.get())}), 0);
  ASSERT_EQ(t.send(), 0);
  ASSERT_EQ(collect(t.cq_a.get(), 1).size(), 1U) << "they are connected";
  ASSERT_EQ(t.send(), 0);
  ASSERT_EQ(to_state(t.qp_a.get(), IBV_QPS_SQD, true), 0);
  ASSERT_TRUE(quiet(t.a)) << "no receive is there for it";
  ASSERT_EQ(ibv_req_notify_cq(t.cq_a.get(), 0), 0);
  const ReadableFirst first{t.channel->fd, t.a.context->async_fd};
  ASSERT_EQ(post_recv(t.qp_b.get(), 9, {sge(t.there.data(), 100, t.to.get())}), 0);
  EXPECT_EQ(first.wait(), t.channel->fd);
  EXPECT_EQ(next_event(t.a).event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(collect(t.cq_a.get(), 1).size(), 1U);
}

// InfiniBand 11.6.3.2: the peer is there before this side sends.
TEST(Events, a_message_in_rtr_establishes_the_connection) {
  Two t{false};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(post_recv(t.qp_b.get(), 9, {sge(t.there.data(), 100, t.to.get())}), 0);
    ASSERT_EQ(t.send(), 0);
  }
  EXPECT_EQ(collect(t.cq_b.get(), 2).size(), 2U);
  const ibv_async_event e = next_event(t.b);
  EXPECT_EQ(e.event_type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(e.element.qp, t.qp_b.get());
  EXPECT_TRUE(quiet(t.b)) << "once";
}

// A lost completion looks like a hang to the program; an error does not.
TEST(Events, an_overrun_completion_queue_takes_its_queue_pair_along) {
  Two t{true, 1};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(post_recv(t.qp_b.get(), 9, {sge(t.there.data(), 100, t.to.get())}), 0);
    ASSERT_EQ(t.send(), 0);
  }
  ibv_async_event e = next_event(t.a);
  EXPECT_EQ(e.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(e.element.cq, t.cq_a.get());
  e = next_event(t.a);
  EXPECT_EQ(e.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(e.element.qp, t.qp_a.get());
  EXPECT_EQ(state(t.qp_a.get()), IBV_QPS_ERR);
}

TEST(Events, an_overrun_touches_no_other_queue) {
  Two t{true, 1};
  const CqPtr cq = t.a.cq(64);
  const QpPtr here = make_qp(t.a, cq.get());
  const QpPtr there = make_qp(t.a, cq.get());
  connect(here.get(), own_gid(t.a), there.get(), own_gid(t.a));
  ASSERT_EQ(post_recv(there.get(), 9, {sge(t.here.data() + 2000, 100, t.from.get())}), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(post_recv(t.qp_b.get(), 9, {sge(t.there.data(), 100, t.to.get())}), 0);
    ASSERT_EQ(t.send(), 0);
  }
  ASSERT_EQ(next_event(t.a).event_type, IBV_EVENT_CQ_ERR);
  ASSERT_EQ(next_event(t.a).event_type, IBV_EVENT_QP_FATAL);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(post_send(here.get(), wr, {sge(t.here.data(), 100, t.from.get())}), 0);
  const auto done = collect(cq.get(), 2);
  ASSERT_EQ(done.size(), 2U);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(state(here.get()), IBV_QPS_RTS);
  EXPECT_EQ(state(there.get()), IBV_QPS_RTS);
  EXPECT_TRUE(quiet(t.a));
}

// InfiniBand 11.6.3.3: who hears of the event in another thread polls for the last time, and
// destroys the queue pair.
TEST(SharedReceives, end_when_the_completions_are_there) {
  const Adapter a;
  ibv_srq_init_attr attr{};
  attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  const SrqPtr srq{ibv_create_srq(a.pd.get(), &attr)};
  const ChannelPtr channel{ibv_create_comp_channel(a.context.get())};
  const CqPtr cq = a.cq(8, channel.get());
  const QpPtr qp = make_qp(a, cq.get(), {.srq = srq.get()});
  to_rtr(qp.get(), qp->qp_num ^ 0xff, own_gid(a));  // nobody's
  to_rts(qp.get());
  ibv_send_wr wr{};
  wr.wr_id = 7;
  wr.opcode = IBV_WR_SEND;
  ASSERT_EQ(post_send(qp.get(), wr), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  const ReadableFirst first{channel->fd, a.context->async_fd};
  ASSERT_EQ(to_state(qp.get(), IBV_QPS_ERR), 0);
  EXPECT_EQ(first.wait(), channel->fd);
  EXPECT_EQ(next_event(a).event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  const auto flushed = collect(cq.get(), 1);
  ASSERT_EQ(flushed.size(), 1U);
  EXPECT_EQ(flushed[0].wr_id, 7U);
}

// InfiniBand 10.2.9.4: the receives of a shared queue are in the queue's domain, not in that of the
// queue pair.
TEST(SharedReceives, are_in_the_domain_of_their_queue) {
  const Adapter a;
  const PdPtr other{ibv_alloc_pd(a.context.get())};
  ibv_srq_init_attr attr{};
  attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  const SrqPtr srq{ibv_create_srq(other.get(), &attr)};
  ASSERT_NE(srq, nullptr);
  std::vector<uint8_t> memory(4096);
  for (size_t i = 0; i < 100; ++i) memory[i] = static_cast<uint8_t>(i * 3 + 1);
  const MrPtr from = a.reg(memory.data(), 1000);
  const MrPtr to{ibv_reg_mr(other.get(), memory.data() + 1000, 1000, kAllAccess)};
  const CqPtr cq_a = a.cq(8);
  const CqPtr cq_b = a.cq(8);
  const QpPtr qp_a = make_qp(a, cq_a.get());
  const QpPtr qp_b = make_qp(a, cq_b.get(), {.srq = srq.get()});
  connect(qp_a.get(), own_gid(a), qp_b.get(), own_gid(a));
  const auto give = [&](const ibv_mr* mr) {
    ibv_sge s = sge(memory.data() + 1000, 100, mr);
    ibv_recv_wr wr{};
    wr.sg_list = &s;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_srq_recv(srq.get(), &wr, &bad);
  };
  const auto send = [&] {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    return post_send(qp_a.get(), wr, {sge(memory.data(), 100, from.get())});
  };
  ASSERT_EQ(give(to.get()), 0);
  ASSERT_EQ(send(), 0);
  auto received = collect(cq_b.get(), 1);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 100, memory.begin() + 1000));
  // And in no other.
  ASSERT_EQ(give(from.get()), 0);
  ASSERT_EQ(send(), 0);
  received = collect(cq_b.get(), 1);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].status, IBV_WC_LOC_PROT_ERR);
}

// Does a queue pair that is connected to itself get at the region, by its lkey and its rkey?
bool usable(const Adapter& a, std::vector<uint8_t>& memory, const ibv_mr& mr) {
  const CqPtr cq = a.cq(8);
  const QpPtr qp = make_qp(a, cq.get());
  to_rtr(qp.get(), qp->qp_num, own_gid(a));
  to_rts(qp.get());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory.data()) + 2000;
  wr.wr.rdma.rkey = mr.rkey;
  check_errno(post_send(qp.get(), wr, {sge(memory.data(), 100, &mr)}), "ibv_post_send");
  const auto done = collect(cq.get(), 1);
  return done.size() == 1 && done[0].status == IBV_WC_SUCCESS;
}

// InfiniBand 10.6.2: only windows and fast-register regions can be invalidated, and user space has
// none of the latter.
TEST(Invalidation, leaves_the_peers_regions_alone) {
  Two t;
  ASSERT_EQ(post_recv(t.qp_b.get(), 9, {sge(t.there.data(), 100, t.to.get())}), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = t.to->rkey;
  ASSERT_EQ(post_send(t.qp_a.get(), wr, {sge(t.here.data(), 100, t.from.get())}), 0);
  const auto done = collect(t.cq_a.get(), 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_REM_OP_ERR) << ibv_wc_status_str(done[0].status);
  EXPECT_TRUE(usable(t.b, t.there, *t.to));
}

TEST(Invalidation, leaves_ones_own_regions_alone) {
  Two t;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = t.from->rkey;
  ASSERT_EQ(post_send(t.qp_a.get(), wr), 0);
  const auto done = collect(t.cq_a.get(), 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_MW_BIND_ERR);
  EXPECT_TRUE(usable(t.a, t.here, *t.from));
}

ibv_qp_attr ready_to_receive(const Adapter& a, uint32_t peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = own_gid(a);
  attr.ah_attr.port_num = 1;
  return attr;
}
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

TEST(Attributes, there_is_no_alternate_path) {
  const Adapter a;
  const CqPtr cq = a.cq(8);
  const QpPtr qp = make_qp(a, cq.get());
  ibv_qp_attr attr = ready_to_receive(a, qp->qp_num);
  attr.alt_port_num = 1;
  attr.alt_ah_attr = attr.ah_attr;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, kRtrMask | IBV_QP_ALT_PATH), EINVAL);
  ASSERT_EQ(ibv_modify_qp(qp.get(), &attr, kRtrMask), 0);
  to_rts(qp.get());
  attr.qp_state = IBV_QPS_RTS;
  attr.path_mig_state = IBV_MIG_REARM;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE), EINVAL);
  attr.path_mig_state = IBV_MIG_MIGRATED;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE), 0);
}

// Nothing would come of it but tries without an end.
TEST(Attributes, own_and_peers_address_are_of_one_family) {
  const Adapter a;
  const CqPtr cq = a.cq(8);
  const QpPtr qp = make_qp(a, cq.get());
  ibv_qp_attr attr = ready_to_receive(a, qp->qp_num);
  // Mapped addresses are IPv4, others are not.
  attr.ah_attr.grh.dgid.raw[10] ^= 0xff;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, kRtrMask), EINVAL);
  attr.ah_attr.grh.dgid.raw[10] ^= 0xff;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, kRtrMask), 0);
}

}  // namespace
}  // namespace weft::test
