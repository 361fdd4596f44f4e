// Connections that come about and end as they should.
#include <malloc.h>

#include <atomic>
#include <thread>

#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

using CmConnect = CmTest;

TEST_F(CmConnect, OneThreadConnectsToItselfAndBothSidesSend) {
  connect_pair();
  exchange(client.get(), server.get(), 1);
  exchange(server.get(), client.get(), 2);
}

TEST_F(CmConnect, ServerMaySpeakFirst) {
  connect_pair();
  exchange(server.get(), client.get(), 3);
}

// Whoever hears of the connection may use the queue pair, and destroy it and the id, while
// rdma_accept() is not back yet: it touches neither from the moment on in which the event is told.
TEST_F(CmConnect, TheQueuePairIsReadyWhenTheEventIsThere) {
  listener = listen_on(passive.get());
  for (int round = 0; round < 30; ++round) {
    client = resolved(active.get(), port_of(listener));
    ASSERT_OK(create_qp(client.get()));
    ASSERT_OK(rdma_connect(client.get(), nullptr));
    OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server.reset(request->id);
    request.reset();
    ASSERT_OK(create_qp(server.get()));
    std::atomic<bool> looks = false;
    ibv_qp_state seen = IBV_QPS_UNKNOWN;
    std::thread other{[&] {
      // Without a sleep, to be there at once.
      pollfd p{passive->fd, POLLIN, 0};
      do {
        looks = true;
      } while (poll(&p, 1, 0) == 0);
      seen = __atomic_load_n(&server->qp->state, __ATOMIC_ACQUIRE);
    }};
    while (!looks) std::this_thread::yield();
    EXPECT_OK(rdma_accept(server.get(), nullptr));
    other.join();
    EXPECT_EQ(seen, IBV_QPS_RTS);
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
    client.reset();
    expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    server.reset();
  }
}

TEST_F(CmConnect, PrivateDataGoesBothWays) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  const auto asked = bytes(248, 1);
  rdma_conn_param p = parameters(asked);
  ASSERT_OK(rdma_connect(client.get(), &p));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  EXPECT_EQ(private_data(*request), asked);
  ASSERT_OK(create_qp(server.get()));
  const auto answered = bytes(196, 2);
  p = parameters(answered);
  ASSERT_OK(rdma_accept(server.get(), &p));
  EXPECT_TRUE(private_data(*expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED)).empty());
  EXPECT_EQ(private_data(*expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED)), answered);
}

// Programs copy param.conn, acknowledge the event and read the private data then.
TEST_F(CmConnect, PrivateDataIsPartOfTheEvent) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  const auto asked = bytes(20, 3);
  rdma_conn_param p = parameters(asked);
  ASSERT_OK(rdma_connect(client.get(), &p));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  const auto* start = reinterpret_cast<const uint8_t*>(request.get());
  const auto* data = static_cast<const uint8_t*>(request->param.conn.private_data);
  EXPECT_GE(data, start + sizeof(rdma_cm_event));
  EXPECT_LE(data + 20, start + malloc_usable_size(request.get()));
}

TEST_F(CmConnect, MorePrivateDataThanThePeerMayTakeIsRefused) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  const auto data = bytes(249, 1);
  rdma_conn_param p = parameters(data);
  EXPECT_ERRNO(EINVAL, rdma_connect(client.get(), &p));
}

TEST_F(CmConnect, ReadDepthsAreNegotiated) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  rdma_conn_param p = parameters();
  p.responder_resources = 3;
  p.initiator_depth = 9;
  ASSERT_OK(rdma_connect(client.get(), &p));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  // What one side asks for the other has to serve.
  EXPECT_EQ(request->param.conn.responder_resources, 9);
  EXPECT_EQ(request->param.conn.initiator_depth, 3);
  ASSERT_OK(create_qp(server.get()));
  p.responder_resources = 5;
  p.initiator_depth = 2;
  ASSERT_OK(rdma_accept(server.get(), &p));
  const OwnedEvent established = expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(established, nullptr);
  EXPECT_EQ(established->param.conn.initiator_depth, 5);
  EXPECT_EQ(established->param.conn.responder_resources, 2) << "what the peer may have out";
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(server->qp, &a, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
  EXPECT_EQ(a.max_rd_atomic, 2);
  EXPECT_EQ(a.max_dest_rd_atomic, 5);
  // It asked for 9 before its peer could say that it serves 5.
  ASSERT_EQ(ibv_query_qp(client->qp, &a, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
  EXPECT_EQ(a.max_rd_atomic, 5);
  EXPECT_EQ(a.max_dest_rd_atomic, 3);
}

TEST_F(CmConnect, MoreReadsThanTheDeviceServesAreRefused) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  rdma_conn_param p = parameters();
  p.responder_resources = 17;
  EXPECT_ERRNO(EINVAL, rdma_connect(client.get(), &p));
  p = parameters();
  p.initiator_depth = 17;
  EXPECT_ERRNO(EINVAL, rdma_connect(client.get(), &p));
}

// By which this host is its own peer: a loopback address is no device's.
ibv_gid first_ipv4_gid(ibv_context* device) {
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  ibv_gid gid{};
  for (int i = 0; ibv_query_gid(device, 1, i, &gid) == 0; ++i) {
    if (memcmp(gid.raw, kMapped.data(), kMapped.size()) == 0) return gid;
  }
  memcpy(gid.raw, kMapped.data(), kMapped.size());
  memcpy(gid.raw + 12, "\x7f\0\0\1", 4);
  return gid;
}

TEST_F(CmConnect, BothSidesKnowTheAddresses) {
  connect_pair();
  for (rdma_cm_id* id : {client.get(), server.get()}) {
    EXPECT_EQ(id->port_num, 1);
    EXPECT_NE(id->verbs, nullptr);
    EXPECT_EQ(id->route.addr.src_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    EXPECT_EQ(id->route.addr.dst_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    EXPECT_EQ(id->route.addr.addr.ibaddr.pkey, htobe16(0xffff));
    const ibv_gid own = first_ipv4_gid(id->verbs);
    EXPECT_EQ(memcmp(id->route.addr.addr.ibaddr.sgid.raw, own.raw, 16), 0);
    EXPECT_EQ(memcmp(id->route.addr.addr.ibaddr.dgid.raw, own.raw, 16), 0);
  }
  EXPECT_EQ(rdma_get_dst_port(client.get()), rdma_get_src_port(listener.get()));
  EXPECT_EQ(rdma_get_src_port(server.get()), rdma_get_src_port(listener.get()));
  EXPECT_EQ(rdma_get_dst_port(server.get()), rdma_get_src_port(client.get()));
  EXPECT_NE(rdma_get_src_port(client.get()), 0);
}

// rdma_resolve_addr(3): "the specified rdma_cm_id will be bound to a local device", and the
// kernel's rdma_cm gives it a port with that. It is the connection's, which the peer sees.
TEST_F(CmConnect, TheSourcePortIsKnownBeforeTheConnection) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  const OwnedId other = resolved(active.get(), port_of(listener));
  const uint16_t promised = port_of(client);
  EXPECT_NE(promised, 0);
  EXPECT_NE(port_of(other), promised) << "one for each";
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  EXPECT_EQ(ntohs(rdma_get_dst_port(server.get())), promised);
  ASSERT_OK(create_qp(server.get()));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(port_of(client), promised);
}

// A port that was had before the peer's was known may be in TIME-WAIT towards it.
TEST_F(CmConnect, ManyConnectionsOneAfterTheOtherHaveAPortEach) {
  listener = listen_on(passive.get());
  for (int round = 0; round < 100; ++round) {
    client = resolved(active.get(), port_of(listener));
    EXPECT_NE(port_of(client), 0);
    ASSERT_OK(create_qp(client.get()));
    ASSERT_OK(rdma_connect(client.get(), nullptr));
    OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server.reset(request->id);
    request.reset();
    ASSERT_OK(create_qp(server.get()));
    ASSERT_OK(rdma_accept(server.get(), nullptr));
    expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    client.reset();  // closes first, and so waits
    expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    server.reset();
  }
}

TEST_F(CmConnect, Ipv6) {
  OwnedId l = make_id(passive.get());
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  ASSERT_OK(rdma_bind_addr(l.get(), any_of(at)));
  EXPECT_EQ(l->verbs, nullptr) << "a wildcard is on no device";
  ASSERT_OK(rdma_listen(l.get(), 1));
  at.sin6_addr = in6addr_loopback;
  at.sin6_port = rdma_get_src_port(l.get());
  client = make_id(active.get());
  ASSERT_OK(rdma_resolve_addr(client.get(), nullptr, any_of(at), 2000));
  expect_event(active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_OK(rdma_resolve_route(client.get(), 2000));
  expect_event(active.get(), RDMA_CM_EVENT_ROUTE_RESOLVED);
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  EXPECT_EQ(server->route.addr.src_addr.sa_family, AF_INET6);
  EXPECT_NE(server->verbs, nullptr);
  ASSERT_OK(create_qp(server.get()));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  exchange(client.get(), server.get(), 4);
}

// A listener for both families shows an IPv4 peer as one.
TEST_F(CmConnect, Ipv4PeerOfAnIpv6Listener) {
  OwnedId l = make_id(passive.get());
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  ASSERT_OK(rdma_bind_addr(l.get(), any_of(at)));
  ASSERT_OK(rdma_listen(l.get(), 1));
  client = resolved(active.get(), port_of(l));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  EXPECT_EQ(server->route.addr.dst_addr.sa_family, AF_INET);
  EXPECT_EQ(server->route.addr.dst_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

TEST_F(CmConnect, DisconnectIsToldOnceOnEachSide) {
  connect_pair();
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_OK(rdma_disconnect(server.get()));
  EXPECT_OK(rdma_disconnect(client.get()));
  EXPECT_TRUE(quiet_for(active.get(), 50));
  EXPECT_TRUE(quiet_for(passive.get(), 50));
}

TEST_F(CmConnect, DisconnectFlushesBothQueuePairs) {
  connect_pair();
  std::vector<uint8_t> in(64);
  ibv_mr* mr = rdma_reg_msgs(client.get(), in.data(), in.size());
  ASSERT_NE(mr, nullptr);
  for (rdma_cm_id* id : {client.get(), server.get()}) {
    ASSERT_OK(rdma_post_recv(id, nullptr, in.data(), in.size(), mr));
  }
  ASSERT_OK(rdma_disconnect(server.get()));
  for (rdma_cm_id* id : {client.get(), server.get()}) {
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_recv_comp(id, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_OK(rdma_dereg_mr(mr));
}

TEST_F(CmConnect, DestroyingTheQueuePairDisconnects) {
  connect_pair();
  rdma_destroy_qp(server.get());
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmConnect, TakingTheQueuePairToErrorDisconnects) {
  connect_pair();
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(server->qp, &a, IBV_QP_STATE), 0);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_OK(rdma_disconnect(server.get()));
  EXPECT_TRUE(quiet_for(passive.get(), 50));
}

TEST_F(CmConnect, DestroyingTheIdDisconnects) {
  connect_pair();
  client.reset();
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmConnect, TimewaitEndsAfterTheDisconnect) {
  connect_pair();
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(active.get(), RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST_F(CmConnect, QueuePairWaitsInRtsForTheConnection) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  EXPECT_EQ(client->qp->state, IBV_QPS_INIT);
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  EXPECT_EQ(client->qp->state, IBV_QPS_RTS);
  std::array<uint8_t, 16> out{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  ASSERT_OK(
      rdma_post_send(client.get(), nullptr, out.data(), out.size(), nullptr, IBV_SEND_INLINE));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  ASSERT_OK(create_qp(server.get()));
  std::array<uint8_t, 16> in{};
  ibv_mr* mr = rdma_reg_msgs(server.get(), in.data(), in.size());
  ASSERT_OK(rdma_post_recv(server.get(), nullptr, in.data(), in.size(), mr));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_recv_comp(server.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(in, out);
  EXPECT_OK(rdma_dereg_mr(mr));
}

TEST_F(CmConnect, AckTimeoutIsTheQueuePairs) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  uint8_t timeout = 21;
  ASSERT_OK(rdma_set_option(client.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(client->qp, &a, IBV_QP_TIMEOUT, &init), 0);
  EXPECT_EQ(a.timeout, 21);
}

}  // namespace
}  // namespace weft::test
