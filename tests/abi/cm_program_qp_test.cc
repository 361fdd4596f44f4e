// Programs that see to their queue pairs themselves (rping -q), or use a connection for its private
// data alone (UCX).
#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

using CmProgramQp = CmTest;

ibv_qp* own_qp(rdma_cm_id* id, ibv_cq* cq) {
  ibv_qp_init_attr a = qp_attributes();
  a.send_cq = a.recv_cq = cq;
  return ibv_create_qp(id->pd, &a);
}

void to_rts(rdma_cm_id* id, ibv_qp* qp) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr a{};
    a.qp_state = state;
    int mask = 0;
    ASSERT_OK(rdma_init_qp_attr(id, &a, &mask)) << state;
    ASSERT_EQ(ibv_modify_qp(qp, &a, mask), 0) << state;
  }
}

TEST_F(CmProgramQp, ProgramsOwnQueuePair) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ibv_cq* cq = ibv_create_cq(client->verbs, 32, nullptr, nullptr, 0);
  ibv_qp* client_qp = own_qp(client.get(), cq);
  rdma_conn_param p = parameters();
  p.qp_num = client_qp->qp_num;
  ASSERT_OK(rdma_connect(client.get(), &p));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  ibv_qp* server_qp = own_qp(server.get(), cq);
  to_rts(server.get(), server_qp);
  p.qp_num = server_qp->qp_num;
  const auto answered = bytes(20, 5);
  p.private_data = answered.data();
  p.private_data_len = 20;
  ASSERT_OK(rdma_accept(server.get(), &p));
  EXPECT_EQ(private_data(*expect_event(active.get(), RDMA_CM_EVENT_CONNECT_RESPONSE)), answered);
  to_rts(client.get(), client_qp);
  ASSERT_OK(rdma_establish(client.get()));
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_TRUE(quiet_for(active.get(), 20)) << "the active side knows already";

  std::vector<uint8_t> in(16);
  std::vector<uint8_t> out = bytes(16, 6);
  ibv_mr* mr = rdma_reg_msgs(server.get(), in.data(), in.size());
  ibv_sge to{reinterpret_cast<uint64_t>(in.data()), 16, mr->lkey};
  ibv_recv_wr recv{.sg_list = &to, .num_sge = 1};
  ibv_recv_wr* bad_recv = nullptr;
  ASSERT_EQ(ibv_post_recv(server_qp, &recv, &bad_recv), 0);
  ibv_sge from{reinterpret_cast<uint64_t>(out.data()), 16, 0};
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_INLINE;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(ibv_post_send(client_qp, &send, &bad_send), 0);
  for (int left = 2; left > 0;) {
    ibv_wc wc{};
    const int n = ibv_poll_cq(cq, 1, &wc);
    ASSERT_GE(n, 0);
    if (n == 0) continue;
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    --left;
  }
  EXPECT_EQ(in, out);
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(ibv_destroy_qp(client_qp), 0);
  EXPECT_EQ(ibv_destroy_qp(server_qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_OK(rdma_dereg_mr(mr));
}

// The connection alone, for its private data: the number is of no queue pair.
TEST_F(CmProgramQp, ConnectionWithoutAQueuePair) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  rdma_conn_param p = parameters();
  p.qp_num = 0xabcdef;
  ASSERT_OK(rdma_connect(client.get(), &p));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTR;
  int mask = 0;
  ASSERT_OK(rdma_init_qp_attr(server.get(), &a, &mask)) << "UCX asks for the peer's address here";
  EXPECT_EQ(a.ah_attr.is_global, 1);
  EXPECT_EQ(memcmp(a.ah_attr.grh.dgid.raw, server->route.addr.addr.ibaddr.dgid.raw, 16), 0);
  ASSERT_OK(rdma_accept(server.get(), &p));
  expect_event(active.get(), RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_TRUE(quiet_for(passive.get(), 0)) << "the client is not ready yet";
  ASSERT_OK(rdma_establish(client.get()));
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_OK(rdma_disconnect(server.get()));
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmProgramQp, PeerThatLeavesBeforeEstablish) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(client.get(), &p));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  ASSERT_OK(rdma_accept(server.get(), &p));
  expect_event(active.get(), RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_OK(rdma_disconnect(server.get()));
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_ERRNO(EINVAL, rdma_establish(client.get()));
}

}  // namespace
}  // namespace weft::test
