// Queue pairs and shared receive queues: creation, states, attributes, events.
#include <fcntl.h>
#include <poll.h>

#include <csignal>

#include "tests/abi/api_fixture.h"

namespace weft::test {
namespace {

class QpTest : public DeviceTest {
 protected:
  ibv_qp* create(ibv_qp_init_attr attr) { return ibv_create_qp(pd.get(), &attr); }
  ibv_qp* create_ex(ibv_qp_init_attr_ex attr) {
    attr.send_cq = attr.recv_cq = cq.get();
    attr.cap = rc_attributes(cq.get()).cap;
    return ibv_create_qp_ex(context.get(), &attr);
  }
  ibv_qp_init_attr attr() { return rc_attributes(cq.get()); }
  ibv_qp_state state(ibv_qp* qp) {
    ibv_qp_attr a;
    ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(qp, &a, IBV_QP_STATE, &init), 0);
    return a.qp_state;
  }
  Owned<ibv_cq> cq{ibv_create_cq(context.get(), 100, nullptr, nullptr, 0)};
};

TEST_F(QpTest, Types) {
  for (const auto type : {IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV}) {
    ibv_qp_init_attr a = attr();
    a.qp_type = type;
    EXPECT_NO_OBJECT(EOPNOTSUPP, create(a));
  }
  for (const int type : {0, 1, 7, 99}) {
    ibv_qp_init_attr a = attr();
    a.qp_type = static_cast<ibv_qp_type>(type);
    EXPECT_NO_OBJECT(EINVAL, create(a));
  }
  const Owned<ibv_qp> rc{create(attr())};
  ASSERT_NE(rc, nullptr);
  EXPECT_EQ(rc->state, IBV_QPS_RESET);
  EXPECT_EQ(rc->qp_type, IBV_QPT_RC);
  EXPECT_GT(rc->qp_num, 1U);
  EXPECT_LT(rc->qp_num, 0xffffffU);
}

TEST_F(QpTest, Limits) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  const auto refuse = [&](auto change) {
    ibv_qp_init_attr a = attr();
    change(a);
    EXPECT_NO_OBJECT(EINVAL, create(a));
  };
  const auto wr = static_cast<uint32_t>(device.max_qp_wr) + 1;
  const auto sge = static_cast<uint32_t>(device.max_sge) + 1;
  refuse([&](auto& a) { a.cap.max_send_wr = wr; });
  refuse([&](auto& a) { a.cap.max_recv_wr = wr; });
  refuse([&](auto& a) { a.cap.max_send_wr = UINT32_MAX; });
  refuse([&](auto& a) { a.cap.max_send_sge = sge; });
  refuse([&](auto& a) { a.cap.max_recv_sge = sge; });
  refuse([&](auto& a) { a.cap.max_inline_data = 1025; });
  refuse([&](auto& a) { a.send_cq = nullptr; });
  refuse([&](auto& a) { a.recv_cq = nullptr; });
}

// What the places of SGEs have room for is granted, as by adapters whose requests hold one or the
// other: Portals4 sends 64 bytes inline without asking.
TEST_F(QpTest, AsMuchInlineDataAsTheSgesHaveRoomFor) {
  for (const auto& [sges, asked, least] :
       {std::tuple{1U, 0U, 48U}, {8U, 0U, 128U}, {8U, 200U, 200U}, {30U, 0U, 480U}}) {
    ibv_qp_init_attr a = attr();
    a.cap.max_send_sge = sges;
    a.cap.max_inline_data = asked;
    const Owned<ibv_qp> qp{ibv_create_qp(pd.get(), &a)};
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(a.cap.max_inline_data, least) << sges << " SGEs, " << asked << " bytes asked for";
  }
}

// Samples leave the numbers of SGEs at 0, which adapters make one, and post requests of one.
TEST_F(QpTest, AQueueThatTakesRequestsTakesThoseOfOneSegment) {
  ibv_qp_init_attr a = attr();
  a.cap.max_send_sge = a.cap.max_recv_sge = 0;
  const Owned<ibv_qp> qp{ibv_create_qp(pd.get(), &a)};
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(a.cap.max_send_sge, 1U);
  EXPECT_EQ(a.cap.max_recv_sge, 1U);
  ibv_qp_attr now{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qp.get(), &now, IBV_QP_CAP, &init), 0);
  EXPECT_EQ(now.cap.max_send_sge, 1U);
  EXPECT_EQ(now.cap.max_recv_sge, 1U);
  a.cap = {.max_send_wr = 0, .max_recv_wr = 0, .max_send_sge = 0, .max_recv_sge = 0};
  const Owned<ibv_qp> idle{ibv_create_qp(pd.get(), &a)};
  ASSERT_NE(idle, nullptr);
  EXPECT_EQ(a.cap.max_send_sge, 0U);
  EXPECT_EQ(a.cap.max_recv_sge, 0U);
}

TEST_F(QpTest, ExtendedOptions) {
  ibv_qp_init_attr_ex a{};
  a.qp_type = IBV_QPT_RC;
  a.pd = pd.get();
  a.comp_mask = 0;
  EXPECT_NO_OBJECT(EINVAL, create_ex(a));
  a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  EXPECT_NO_OBJECT(EOPNOTSUPP, create_ex(a));
  a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  a.create_flags = IBV_QP_CREATE_SCATTER_FCS;
  EXPECT_NO_OBJECT(EOPNOTSUPP, create_ex(a));
  a.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  const Owned<ibv_qp> deaf{create_ex(a)};
  ASSERT_NE(deaf, nullptr);
  a.create_flags = 0;
  const Owned<ibv_qp> plain{create_ex(a)};
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(ibv_qp_to_qp_ex(plain.get()), nullptr);

  a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  a.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
  EXPECT_NO_OBJECT(EOPNOTSUPP, create_ex(a));
  a.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE;
  EXPECT_NO_OBJECT(EOPNOTSUPP, create_ex(a));
  a.send_ops_flags = IBV_QP_EX_WITH_SEND;
  const Owned<ibv_qp> builder{create_ex(a)};
  ASSERT_NE(builder, nullptr);
  EXPECT_EQ(&ibv_qp_to_qp_ex(builder.get())->qp_base, builder.get());
}

TEST_F(QpTest, WaysThroughTheStates) {
  const Owned<ibv_qp> qp{create(attr())};
  EXPECT_REFUSED(EINVAL, to_rtr(qp.get(), qp->qp_num));
  EXPECT_REFUSED(EINVAL, to_rts(qp.get()));
  EXPECT_REFUSED(EINVAL, to_state(qp.get(), IBV_QPS_INIT));  // needs more than the state
  ASSERT_EQ(to_init(qp.get()), 0);
  EXPECT_EQ(qp->state, IBV_QPS_INIT);
  EXPECT_REFUSED(EINVAL, to_rts(qp.get()));
  ASSERT_EQ(to_rtr(qp.get(), qp->qp_num), 0);
  ASSERT_EQ(to_rts(qp.get()), 0);
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
  ASSERT_EQ(to_state(qp.get(), IBV_QPS_ERR), 0);
  EXPECT_EQ(qp->state, IBV_QPS_ERR);
  EXPECT_REFUSED(EINVAL, to_rts(qp.get()));
  EXPECT_EQ(qp->state, IBV_QPS_ERR);
  ASSERT_EQ(to_state(qp.get(), IBV_QPS_RESET), 0);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_EQ(state(qp.get()), IBV_QPS_RESET);
}

TEST_F(QpTest, ValuesThatDoNotExist) {
  const Owned<ibv_qp> qp{create(attr())};
  const auto init = [&](auto change) {
    ibv_qp_attr a = init_attributes();
    change(a);
    return ibv_modify_qp(qp.get(), &a, kInitMask);
  };
  EXPECT_REFUSED(EINVAL, init([](auto& a) { a.port_num = 2; }));
  EXPECT_REFUSED(EINVAL, init([](auto& a) { a.port_num = 0; }));
  EXPECT_REFUSED(EINVAL, init([](auto& a) { a.pkey_index = 1; }));
  EXPECT_REFUSED(EINVAL, init([](auto& a) { a.qp_access_flags = 1 << 10; }));
  EXPECT_REFUSED(EINVAL, init([](auto& a) { a.qp_state = static_cast<ibv_qp_state>(7); }));
  EXPECT_REFUSED(EINVAL, init([](auto& a) { a.qp_state = static_cast<ibv_qp_state>(257); }));
  ASSERT_EQ(to_init(qp.get()), 0);
  const auto rtr = [&](auto change) {
    ibv_qp_attr a = rtr_attributes(context.get(), qp->qp_num);
    change(a);
    return ibv_modify_qp(qp.get(), &a, kRtrMask);
  };
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.path_mtu = static_cast<ibv_mtu>(0); }));
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.path_mtu = static_cast<ibv_mtu>(257); }));
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.dest_qp_num = 1 << 24; }));
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.max_dest_rd_atomic = 17; }));
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.min_rnr_timer = 32; }));
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.ah_attr.port_num = 2; }));
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.ah_attr.grh.sgid_index = 99; }));
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.ah_attr.grh.dgid = {}; }));
  EXPECT_REFUSED(EINVAL, rtr([](auto& a) { a.ah_attr.is_global = 0; }));
  EXPECT_EQ(state(qp.get()), IBV_QPS_INIT);
  ibv_qp_attr a = init_attributes();
  EXPECT_REFUSED(EOPNOTSUPP, ibv_modify_qp(qp.get(), &a, IBV_QP_RATE_LIMIT));
  EXPECT_REFUSED(EOPNOTSUPP, ibv_modify_qp(qp.get(), &a, kInitMask | 1 << 22));
}

// What programs of rdma-core 45 and later ask for with all other rights, by value: these headers
// may be older.
TEST_F(QpTest, RightsToFlushAreTaken) {
  constexpr unsigned kFlushGlobal = 1 << 8;
  constexpr unsigned kFlushPersistent = 1 << 9;
  const Owned<ibv_qp> qp{create(attr())};
  ibv_qp_attr a = init_attributes();
  a.qp_access_flags |= kFlushGlobal | kFlushPersistent;
  // One word of flags for the region and the queue pair.
  a.qp_access_flags |= IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &a, kInitMask), 0);
  ASSERT_EQ(to_rtr(qp.get(), qp->qp_num), 0);
  EXPECT_EQ(to_rts(qp.get()), 0);
}

TEST_F(QpTest, QueryGivesBackWhatWasSet) {
  ibv_qp_init_attr wanted = attr();
  wanted.qp_context = this;
  wanted.sq_sig_all = 1;
  const Owned<ibv_qp> qp{create(wanted)};
  ASSERT_EQ(to_init(qp.get()), 0);
  ASSERT_EQ(to_rtr(qp.get(), 0x345601), 0);
  ASSERT_EQ(to_rts(qp.get()), 0);
  ibv_qp_attr a;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp.get(), &a, 0x1ffffff, &init), 0);
  const ibv_qp_attr set = rtr_attributes(context.get(), 0x345601);
  EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.cur_qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.qp_access_flags, init_attributes().qp_access_flags);
  EXPECT_EQ(a.path_mtu, set.path_mtu);
  EXPECT_EQ(a.dest_qp_num, 0x345601U);
  EXPECT_EQ(a.rq_psn, set.rq_psn);
  EXPECT_EQ(a.min_rnr_timer, set.min_rnr_timer);
  EXPECT_EQ(a.max_dest_rd_atomic, set.max_dest_rd_atomic);
  EXPECT_EQ(a.ah_attr.is_global, 1);
  EXPECT_EQ(a.ah_attr.port_num, 1);
  EXPECT_EQ(std::memcmp(&a.ah_attr.grh.dgid, &set.ah_attr.grh.dgid, sizeof(ibv_gid)), 0);
  EXPECT_EQ(a.timeout, 14);
  EXPECT_EQ(a.retry_cnt, 7);
  EXPECT_EQ(a.max_rd_atomic, 4);
  EXPECT_EQ(a.port_num, 1);
  EXPECT_GE(a.cap.max_send_wr, wanted.cap.max_send_wr);
  EXPECT_GE(a.cap.max_inline_data, wanted.cap.max_inline_data);
  EXPECT_EQ(init.qp_context, this);
  EXPECT_EQ(init.sq_sig_all, 1);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
  EXPECT_EQ(init.send_cq, cq.get());
}

TEST_F(QpTest, WhatRcDoesNotHave) {
  const Owned<ibv_qp> qp{create(attr())};
  ibv_gid group{};
  group.raw[0] = 0xff;
  EXPECT_REFUSED(EINVAL, ibv_attach_mcast(qp.get(), &group, 0));
  EXPECT_REFUSED(EINVAL, ibv_detach_mcast(qp.get(), &group, 0));
  ibv_ece ece{};
  EXPECT_REFUSED(EOPNOTSUPP, ibv_query_ece(qp.get(), &ece));
  EXPECT_REFUSED(EOPNOTSUPP, ibv_set_ece(qp.get(), &ece));
  EXPECT_EQ(ibv_query_qp_data_in_order(qp.get(), IBV_WR_SEND, 0), 0);
}

TEST_F(QpTest, ClosingTheDeviceStopsItsQueuePairs) {
  Owned<ibv_qp> qp{create(attr())};
  ASSERT_EQ(to_init(qp.get()), 0);
  ASSERT_EQ(to_rtr(qp.get(), qp->qp_num), 0);
  ASSERT_EQ(to_rts(qp.get()), 0);
  ASSERT_EQ(ibv_close_device(context.release()), 0);
  EXPECT_EQ(state(qp.get()), IBV_QPS_ERR);
  // The wrong way round, but harmless.
  qp.reset();
  cq.reset();
  pd.reset();
}

// --- shared receive queues

class SrqTest : public QpTest {
 protected:
  ibv_srq* create_srq(uint32_t wr, uint32_t sge) {
    ibv_srq_init_attr init{.srq_context = this, .attr = {.max_wr = wr, .max_sge = sge}};
    return ibv_create_srq(pd.get(), &init);
  }
  int post(ibv_srq* srq, int count, int segments = 0) {
    ibv_sge sge[4] = {};
    std::vector<ibv_recv_wr> wr(static_cast<size_t>(count));
    for (size_t i = 0; i < wr.size(); ++i) {
      wr[i] = {.wr_id = i,
               .next = i + 1 < wr.size() ? &wr[i + 1] : nullptr,
               .sg_list = sge,
               .num_sge = segments};
    }
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_srq_recv(srq, wr.data(), &bad);
    refused = bad == nullptr ? -1 : static_cast<int>(bad - wr.data());
    return error;
  }
  int refused = -1;
};

TEST_F(SrqTest, Limits) {
  EXPECT_NO_OBJECT(EINVAL, create_srq(0, 1));
  EXPECT_NO_OBJECT(EINVAL, create_srq(16385, 1));
  EXPECT_NO_OBJECT(EINVAL, create_srq(1, 31));
  const Owned<ibv_srq> srq{create_srq(12, 2)};
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(srq->srq_context, this);
  ibv_srq_attr a;
  ASSERT_EQ(ibv_query_srq(srq.get(), &a), 0);
  EXPECT_EQ(a.max_wr, 12U);
  EXPECT_EQ(a.max_sge, 2U);
  EXPECT_EQ(a.srq_limit, 0U);
  a.srq_limit = 5;
  EXPECT_EQ(ibv_modify_srq(srq.get(), &a, IBV_SRQ_LIMIT), 0);
  a.srq_limit = 13;
  EXPECT_REFUSED(EINVAL, ibv_modify_srq(srq.get(), &a, IBV_SRQ_LIMIT));
  EXPECT_REFUSED(EINVAL, ibv_modify_srq(srq.get(), &a, IBV_SRQ_MAX_WR));
  ASSERT_EQ(ibv_query_srq(srq.get(), &a), 0);
  EXPECT_EQ(a.srq_limit, 5U);
}

// ibv_create_qp(3): max_recv_wr and max_recv_sge "are ignored ... if the QP is to be associated
// with an SRQ".
TEST_F(SrqTest, AQueuePairThatHasOneHasNoReceiveLimitsOfItsOwn) {
  const Owned<ibv_srq> srq{create_srq(1, 1)};
  ASSERT_NE(srq, nullptr);
  for (const auto& [wr, sge] : {std::pair{16385U, 1U}, {1U, 31U}, {1U << 31, 1U << 31}}) {
    ibv_qp_init_attr attr = rc_attributes(cq.get());
    attr.cap.max_recv_wr = wr;
    attr.cap.max_recv_sge = sge;
    EXPECT_NO_OBJECT(EINVAL, ibv_create_qp(pd.get(), &attr));
    attr.srq = srq.get();
    const Owned<ibv_qp> qp{ibv_create_qp(pd.get(), &attr)};
    EXPECT_NE(qp, nullptr) << wr << " and " << sge;
    EXPECT_EQ(attr.cap.max_recv_wr, 0U);
    EXPECT_EQ(attr.cap.max_recv_sge, 0U);
  }
}

TEST_F(SrqTest, OtherTypes) {
  ibv_srq_init_attr_ex a{};
  a.attr = {.max_wr = 4, .max_sge = 1};
  a.pd = pd.get();
  a.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  a.srq_type = IBV_SRQT_XRC;
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_create_srq_ex(context.get(), &a));
  a.srq_type = IBV_SRQT_TM;
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_create_srq_ex(context.get(), &a));
  a.srq_type = IBV_SRQT_BASIC;
  const Owned<ibv_srq> basic{ibv_create_srq_ex(context.get(), &a)};
  EXPECT_NE(basic, nullptr);
  a.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;  // which only other types use
  const Owned<ibv_srq> with_cq{ibv_create_srq_ex(context.get(), &a)};
  EXPECT_NE(with_cq, nullptr);
  a.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  EXPECT_NO_OBJECT(EINVAL, ibv_create_srq_ex(context.get(), &a));
}

TEST_F(SrqTest, PostingStopsAtTheFirstThatDoesNotFit) {
  const Owned<ibv_srq> srq{create_srq(20, 2)};
  EXPECT_EQ(post(srq.get(), 15), 0);
  EXPECT_REFUSED(ENOMEM, post(srq.get(), 12));
  EXPECT_EQ(refused, 5);
  const Owned<ibv_srq> other{create_srq(20, 2)};
  EXPECT_REFUSED(EINVAL, post(other.get(), 1, 3));
  EXPECT_EQ(refused, 0);
  EXPECT_REFUSED(EINVAL, post(other.get(), 1, -1));
}

TEST_F(SrqTest, InUseItStaysAndTheQueuePairHasNoReceivesOfItsOwn) {
  Owned<ibv_srq> srq{create_srq(4, 1)};
  ibv_qp_init_attr a = attr();
  a.srq = srq.get();
  const Owned<ibv_qp> qp{create(a)};
  ASSERT_NE(qp, nullptr);
  EXPECT_REFUSED(EBUSY, ibv_destroy_srq(srq.get()));
  ASSERT_EQ(to_init(qp.get()), 0);
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_REFUSED(EINVAL, ibv_post_recv(qp.get(), &wr, &bad));
  EXPECT_EQ(bad, &wr);
}

// --- asynchronous events: a queue pair of a shared receive queue that goes to error has one

class EventTest : public SrqTest {
 protected:
  void SetUp() override {
    srq.reset(create_srq(4, 1));
    ibv_qp_init_attr a = attr();
    a.srq = srq.get();
    qp.reset(create(a));
    ASSERT_NE(qp, nullptr);
    ASSERT_EQ(to_init(qp.get()), 0);
    ASSERT_EQ(to_state(qp.get(), IBV_QPS_ERR), 0);
  }
  bool waiting() {
    pollfd fd{.fd = context->async_fd, .events = POLLIN, .revents = 0};
    return poll(&fd, 1, 0) == 1;
  }
  Owned<ibv_srq> srq;
  Owned<ibv_qp> qp;
};

TEST_F(EventTest, NamesTheQueuePair) {
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, qp.get());
  ibv_ack_async_event(&event);
  EXPECT_FALSE(waiting());
}

TEST_F(EventTest, NonBlockingSaysAgain) {
  ASSERT_EQ(fcntl(context->async_fd, F_SETFL, O_NONBLOCK), 0);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  ibv_ack_async_event(&event);
  errno = 0;
  EXPECT_EQ(ibv_get_async_event(context.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// As a read(2) of the kernel's device goes on after a handler of signal(3).
TEST_F(EventTest, SignalsThatRestartCallsDoNotEndTheWait) {
  static std::atomic<int> caught;
  caught = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { ++caught; };
  action.sa_flags = SA_RESTART;
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  ibv_ack_async_event(&event);
  std::atomic<bool> done{false};
  int result = -1;
  std::thread waiter([&] {
    result = ibv_get_async_event(context.get(), &event);
    done = true;
  });
  while (caught < 20 && !done) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    usleep(1000);
  }
  EXPECT_FALSE(done);
  ASSERT_EQ(to_state(qp.get(), IBV_QPS_RESET), 0);
  ASSERT_EQ(to_init(qp.get()), 0);
  ASSERT_EQ(to_state(qp.get(), IBV_QPS_ERR), 0);
  waiter.join();
  ASSERT_EQ(result, 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  ibv_ack_async_event(&event);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(EventTest, DestroyWaitsForTheAcknowledgement) {
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  expect_waits([&] { qp.reset(); }, [&] { ibv_ack_async_event(&event); });
}

TEST_F(EventTest, EventsNobodyFetchedGoWithTheObject) {
  EXPECT_TRUE(waiting());
  qp.reset();
  EXPECT_FALSE(waiting());
}

}  // namespace
}  // namespace weft::test
