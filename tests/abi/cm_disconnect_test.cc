// The end of a connection, as the queue pair and its events show it.
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "tests/abi/cm_datagram_fixture.h"
#include "tests/support/readable_first.h"

namespace weft::test {
namespace {

class CmDisconnect : public CmTest {
 protected:
  static ibv_qp_state state(const OwnedId& id) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
  }
  static bool has_async_event(const OwnedId& id) {
    pollfd p{id->verbs->async_fd, POLLIN, 0};
    return poll(&p, 1, 0) == 1;
  }
  static ibv_event_type async_event(const OwnedId& id) {
    ibv_async_event e{};
    EXPECT_EQ(ibv_get_async_event(id->verbs, &e), 0);
    ibv_ack_async_event(&e);
    return e.event_type;
  }

  // A peer that is written out here; connected to `server`, whose queue pair it has made.
  void connect_by_hand() {
    listener = listen_on(passive.get());
    peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = loopback(port_of(listener));
    ASSERT_EQ(connect(peer, any_of(to), sizeof to), 0);
    // spec/mpa 2.1: revision 1, with CRC, without private data.
    const char request[21] = "MPA ID Req Frame\x40\x01\x00\x00";
    ASSERT_EQ(send(peer, request, 20, 0), 20);
    const OwnedEvent e = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(e, nullptr);
    server.reset(e->id);
    ASSERT_OK(create_qp(server.get()));
    ASSERT_OK(rdma_accept(server.get(), nullptr));
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    char reply[20];
    ASSERT_EQ(recv(peer, reply, sizeof reply, MSG_WAITALL), 20);
  }
  void reset_peer() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(peer);
  }
  int peer = -1;
};

// Nobody could take it: it would be of an id that is gone.
TEST_F(CmDisconnect, AnIdThatIsBeingDestroyedReportsNoTimewaitExit) {
  connect_pair();
  ASSERT_OK(rdma_disconnect(client.get()));
  OwnedEvent kept = expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  std::thread destroyer([&] { client.reset(); });
  // TIMEWAIT lasts two seconds.
  EXPECT_TRUE(quiet_for(active.get(), 2500));
  kept.reset();
  destroyer.join();
  EXPECT_TRUE(quiet_for(active.get(), 0));
}

// InfiniBand answers the peer's request to disconnect when the program disconnects, too.
TEST_F(CmDisconnect, TimewaitExitComesToThoseThatHaveDisconnected) {
  connect_pair();
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(active.get(), RDMA_CM_EVENT_TIMEWAIT_EXIT);
  EXPECT_TRUE(quiet_for(passive.get(), 500)) << "the server has not disconnected";
  ASSERT_OK(rdma_disconnect(server.get()));
  expect_event(passive.get(), RDMA_CM_EVENT_TIMEWAIT_EXIT);
  ASSERT_OK(rdma_disconnect(server.get()));
  EXPECT_TRUE(quiet_for(passive.get(), 2500)) << "once is enough";
}

// librdmacm's rdma_disconnect puts the queue pair into error first. weft does not lose what was
// posted before over it.
TEST_F(CmDisconnect, PutsTheQueuePairIntoErrorAtOnce) {
  connect_pair();
  std::vector<uint8_t> memory(8192);
  ibv_mr* here = rdma_reg_msgs(client.get(), memory.data(), 4096);
  ibv_mr* there = rdma_reg_msgs(server.get(), memory.data() + 4096, 4096);
  for (size_t i = 0; i < 4; ++i) {
    std::fill_n(&memory[i * 100], 100, static_cast<uint8_t>(i + 1));
    ASSERT_OK(rdma_post_recv(server.get(), nullptr, &memory[4096 + i * 100], 100, there));
  }
  ASSERT_OK(rdma_post_recv(client.get(), nullptr, &memory[1000], 100, here));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_OK(rdma_post_send(client.get(), nullptr, &memory[i * 100], 100, here, 0));
  }
  ASSERT_OK(rdma_disconnect(client.get()));
  EXPECT_EQ(state(client), IBV_QPS_ERR);
  ASSERT_OK(rdma_post_send(client.get(), nullptr, &memory[300], 100, here, 0));
  ASSERT_OK(rdma_post_recv(client.get(), nullptr, &memory[1100], 100, here));
  ibv_wc wc{};
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(rdma_get_send_comp(client.get(), &wc), 1);
    EXPECT_EQ(wc.status, i < 3 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR) << i;
  }
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(rdma_get_recv_comp(server.get(), &wc), 1);
    EXPECT_EQ(wc.status, i < 3 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR) << i;
    if (i < 3) {
      EXPECT_EQ(memory[4096 + i * 100 + 99], i + 1);
    }
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(rdma_get_recv_comp(client.get(), &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_OK(rdma_dereg_mr(here));
  EXPECT_OK(rdma_dereg_mr(there));
}

// Who hears of the end in another thread polls for the last time, and destroys the queue pair.
class CmDisconnectOf : public CmDisconnect, public testing::WithParamInterface<ibv_qp_type> {};

TEST_P(CmDisconnectOf, IsToldWhenTheCompletionsAreThere) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get(), GetParam()));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(client.get(), &p));
  OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  request.reset();
  ASSERT_OK(create_qp(server.get(), GetParam()));
  ASSERT_OK(rdma_accept(server.get(), &p));
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  std::vector<uint8_t> memory(100);
  ibv_mr* mr = rdma_reg_msgs(server.get(), memory.data(), memory.size());
  ASSERT_NE(mr, nullptr);
  ASSERT_OK(rdma_post_recv(server.get(), &memory, memory.data(), memory.size(), mr));
  ASSERT_EQ(ibv_req_notify_cq(server->recv_cq, 0), 0);
  const ReadableFirst first{server->recv_cq_channel->fd, passive->fd};
  ASSERT_OK(rdma_disconnect(client.get()));
  EXPECT_EQ(first.wait(), server->recv_cq_channel->fd);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(server->recv_cq, 1, &wc), 1);
  EXPECT_EQ(wc.wr_id, reinterpret_cast<uintptr_t>(&memory));
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_OK(rdma_dereg_mr(mr));
}
INSTANTIATE_TEST_SUITE_P(Types, CmDisconnectOf, testing::Values(IBV_QPT_RC, IBV_QPT_UC));

// spec/rdmap 5.4: a peer that is gone between two FPDUs has left, by RST as by FIN.
TEST_F(CmDisconnect, AResetBetweenFpdusIsNoFault) {
  connect_by_hand();
  reset_peer();
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(state(server), IBV_QPS_ERR);
  EXPECT_FALSE(has_async_event(server));
}

// spec/rdmap 5.4: FIN or RST inside an FPDU gives IBV_EVENT_QP_FATAL.
TEST_F(CmDisconnect, TheEndInsideAnFpduIsFatal) {
  connect_by_hand();
  const char beginning[] = {0, 0x22, 0x41, 0x43, 0};
  ASSERT_EQ(send(peer, beginning, sizeof beginning, 0), 5);
  close(peer);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(has_async_event(server));
  EXPECT_EQ(async_event(server), IBV_EVENT_QP_FATAL);
}

// Once the connection is over the program may use the queue pair in another way.
TEST_F(CmDisconnect, AfterResetAQueuePairIsBroughtUpByNumber) {
  connect_pair();
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  rdma_cm_id* sides[] = {client.get(), server.get()};
  for (int i = 0; i < 2; ++i) {
    ibv_qp* qp = sides[i]->qp;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    ASSERT_EQ(
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = sides[1 - i]->qp->qp_num;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_query_gid(qp->context, 1, 0, &a.ah_attr.grh.dgid), 0);
    ASSERT_EQ(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    ASSERT_EQ(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  exchange(client.get(), server.get(), 5);
}

// InfiniBand 11.6.3.3: the event belongs to the step into error, and that is made once.
TEST_F(CmDisconnect, TheLastReceiveIsToldOnce) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ibv_srq_init_attr srq{};
  srq.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  ASSERT_OK(rdma_create_srq(client.get(), nullptr, &srq));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(client->qp, &attr, IBV_QP_STATE), 0);
  ASSERT_TRUE(has_async_event(client));
  EXPECT_EQ(async_event(client), IBV_EVENT_QP_LAST_WQE_REACHED);
  ASSERT_OK(rdma_reject(server.get(), nullptr, 0));
  expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  EXPECT_FALSE(has_async_event(client));
}

}  // namespace
}  // namespace weft::test
