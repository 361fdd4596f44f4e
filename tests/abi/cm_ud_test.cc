// UD by rdma_cm (RDMA_PS_UDP): who has which queue pair.
#include <algorithm>

#include "tests/abi/cm_datagram_fixture.h"
#include "tests/support/closed_port.h"
#include "tests/support/counted.h"

namespace weft::test {
namespace {

constexpr uint32_t kQKey = RDMA_UDP_QKEY;

class CmUd : public CmTest {
 protected:
  void listen() {
    listener = make_id(passive.get(), RDMA_PS_UDP);
    sockaddr_in at = loopback();
    ASSERT_OK(rdma_bind_addr(listener.get(), any_of(at)));
    ASSERT_OK(rdma_listen(listener.get(), 0));
  }
  OwnedId resolved_datagram(uint16_t port) {
    OwnedId id = make_id(active.get(), RDMA_PS_UDP);
    sockaddr_in to = loopback(port);
    EXPECT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 2000));
    expect_event(active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_OK(rdma_resolve_route(id.get(), 2000));
    expect_event(active.get(), RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
  }
  void ask(const std::vector<uint8_t>& data = {}) {
    client = resolved_datagram(port_of(listener));
    ASSERT_OK(create_qp(client.get(), IBV_QPT_UD));
    rdma_conn_param p = parameters(data);
    ASSERT_OK(rdma_connect(client.get(), &p));
  }
  void take_request() {
    request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server.reset(request->id);
  }

  OwnedEvent request;
};

TEST_F(CmUd, EstablishedSaysWhoThePeerIs) {
  listen();
  const auto asked = bytes(180, 1);
  ask(asked);
  take_request();
  EXPECT_EQ(datagram_data(*request), asked);
  EXPECT_EQ(request->listen_id, listener.get());
  EXPECT_NE(port_of(client), 0);
  EXPECT_EQ(rdma_get_dst_port(server.get()), rdma_get_src_port(client.get()));
  ASSERT_OK(create_qp(server.get(), IBV_QPT_UD));
  const auto answered = bytes(136, 2);
  rdma_conn_param p = parameters(answered);
  p.qp_num = server->qp->qp_num;
  ASSERT_OK(rdma_accept(server.get(), &p));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(datagram_data(*e), answered);
  EXPECT_EQ(e->param.ud.qp_num, server->qp->qp_num);
  EXPECT_EQ(e->param.ud.qkey, kQKey);

  // A message there, and one back to whoever sent it.
  Mailbox here{client.get(), 1};
  Mailbox there{server.get(), 1};
  ibv_ah_attr to = e->param.ud.ah_attr;
  const OwnedAh ah{ibv_create_ah(client->pd, &to)};
  ASSERT_NE(ah, nullptr) << strerror(errno);
  here.send(ah.get(), e->param.ud.qp_num, e->param.ud.qkey, bytes(700, 3));
  ibv_wc wc{};
  ibv_grh grh{};
  EXPECT_EQ(there.receive(wc, grh), bytes(700, 3));
  EXPECT_EQ(wc.src_qp, client->qp->qp_num);
  const OwnedAh back{ibv_create_ah_from_wc(server->pd, &wc, &grh, 1)};
  ASSERT_NE(back, nullptr) << strerror(errno);
  there.send(back.get(), wc.src_qp, kQKey, bytes(900, 4));
  EXPECT_EQ(here.receive(), bytes(900, 4));
  // Nothing more is heard on the side that was asked.
  EXPECT_TRUE(quiet_for(passive.get(), 50));
  request.reset();
}

TEST_F(CmUd, TheQKeyIsTheQueuePairsOwn) {
  listen();
  ask();
  take_request();
  ASSERT_OK(create_qp(server.get(), IBV_QPT_UD));
  ibv_qp_attr a{};
  a.qkey = 0x22334455;
  ASSERT_EQ(ibv_modify_qp(server->qp, &a, IBV_QP_QKEY), 0);
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->param.ud.qkey, 0x22334455U);
  request.reset();
}

TEST_F(CmUd, AQueuePairNeedsNoPeer) {
  listen();
  client = resolved_datagram(port_of(listener));
  ASSERT_OK(create_qp(client.get(), IBV_QPT_UD));
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(client->qp, &a, IBV_QP_STATE | IBV_QP_QKEY, &init), 0);
  EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.qkey, kQKey);
}

TEST_F(CmUd, AQueuePairOfTheProgramsIsNamed) {
  listen();
  ask();
  take_request();
  rdma_conn_param p = parameters();
  EXPECT_ERRNO(EINVAL, rdma_accept(server.get(), &p));
  p.qp_num = 0x123405;
  ASSERT_OK(rdma_accept(server.get(), &p));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->param.ud.qp_num, 0x123405U);
  request.reset();
}

TEST_F(CmUd, ARejectionSaysWhy) {
  listen();
  ask();
  take_request();
  const auto why = bytes(100, 3);
  ASSERT_OK(rdma_reject(server.get(), why.data(), static_cast<uint8_t>(why.size())));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_UNREACHABLE);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 2);  // IB_SIDR_REJECT
  EXPECT_EQ(datagram_data(*e), why);
  request.reset();
}

TEST_F(CmUd, AListenerOfConnectionsAnswersNoQuestions) {
  const Counted rejections("wdp_rejected");
  const Counted failures("wdp_call_failed");
  listener = listen_on(passive.get());
  ask();
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_UNREACHABLE);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 1);  // IB_SIDR_UNSUPPORTED
  rejections.expect_some("service_mismatch");
  failures.expect({{"service_mismatch", 1}});
}

// More questions than ports are looked after at a time.
TEST_F(CmUd, NobodyListens) {
  constexpr size_t kQuestions = 20;
  const Counted failures("wdp_call_failed");
  const ClosedPort port;
  std::vector<OwnedId> asking;
  for (size_t i = 0; i < kQuestions; ++i) {
    asking.push_back(resolved_datagram(port.number()));
    ASSERT_OK(create_qp(asking.back().get(), IBV_QPT_UD));
    rdma_conn_param p = parameters();
    ASSERT_OK(rdma_connect(asking.back().get(), &p));
  }
  for (size_t i = 0; i < kQuestions; ++i) {
    const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_UNREACHABLE);
    ASSERT_NE(e, nullptr) << i;
    EXPECT_EQ(e->status, 1);  // IB_SIDR_UNSUPPORTED
  }
  failures.expect({{"no_listener", kQuestions}});
}

TEST_F(CmUd, APortIsTakenOnce) {
  listen();
  const OwnedId other = make_id(active.get(), RDMA_PS_UDP);
  sockaddr_in at = loopback(port_of(listener));
  EXPECT_ERRNO(EADDRINUSE, rdma_bind_addr(other.get(), any_of(at)));
  // The port space of connections is another one; TCP may have a use of its own for some numbers.
  bool both = false;
  for (int i = 0; i < 64 && !both; ++i) {
    const OwnedId connections = make_id(active.get());
    at = loopback(port_of(listener));
    both = rdma_bind_addr(connections.get(), any_of(at)) == 0 &&
           rdma_listen(connections.get(), 0) == 0;
    if (!both) listen();
  }
  EXPECT_TRUE(both);
}

TEST_F(CmUd, AThousandQuestions) {
  constexpr size_t kQuestions = 1000;
  listen();
  const OwnedId own = resolved_datagram(port_of(listener));
  ASSERT_OK(create_qp(own.get(), IBV_QPT_UD));
  std::vector<OwnedId> asking(kQuestions);
  std::vector<OwnedId> asked;
  for (size_t i = 0; i < kQuestions; ++i) {
    asking[i] = resolved_datagram(port_of(listener));
    std::vector<uint8_t> number(2);
    number[0] = static_cast<uint8_t>(i);
    number[1] = static_cast<uint8_t>(i >> 8);
    rdma_conn_param p = parameters(number);
    p.qp_num = own->qp->qp_num;
    ASSERT_OK(rdma_connect(asking[i].get(), &p));
  }
  std::vector<bool> seen(kQuestions);
  while (asked.size() < kQuestions) {
    const OwnedEvent e = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(e, nullptr) << asked.size();
    asked.emplace_back(e->id);
    const auto number = datagram_data(*e);
    ASSERT_EQ(number.size(), 2U);
    const size_t n = number[0] | static_cast<size_t>(number[1]) << 8;
    ASSERT_LT(n, kQuestions);
    EXPECT_FALSE(seen[n]) << "asked twice";
    seen[n] = true;
    rdma_conn_param p = parameters(number);
    p.qp_num = static_cast<uint32_t>(0x500000 + n);
    ASSERT_OK(rdma_accept(e->id, &p));
  }
  for (size_t i = 0; i < kQuestions; ++i) {
    const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(e, nullptr) << i;
    const auto number = datagram_data(*e);
    ASSERT_EQ(number.size(), 2U);
    const size_t n = number[0] | static_cast<size_t>(number[1]) << 8;
    EXPECT_EQ(e->id, asking[n].get());
    EXPECT_EQ(e->param.ud.qp_num, 0x500000 + n);
  }
}

TEST_F(CmUd, ADisconnectIsNobodysBusiness) {
  listen();
  ask();
  take_request();
  ASSERT_OK(create_qp(server.get(), IBV_QPT_UD));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_OK(rdma_disconnect(client.get()));
  EXPECT_TRUE(quiet_for(active.get(), 50));
  request.reset();
}

// --- the end, at any moment

TEST_F(CmUd, IdsAreDestroyedInEveryState) {
  make_id(active.get(), RDMA_PS_UDP).reset();
  listen();
  resolved_datagram(port_of(listener)).reset();
  ask();  // asking
  take_request();
  client.reset();
  request.reset();
  server.reset();  // asked
  ask();
  take_request();
  ASSERT_OK(create_qp(server.get(), IBV_QPT_UD));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  request.reset();
  server.reset();  // answered
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  client.reset();
  ask();  // a request that nobody takes
  pollfd p{passive->fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 10'000), 1);
  listener.reset();
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_UNREACHABLE);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 2);
}

TEST_F(CmUd, ARequestOutlivesItsListener) {
  listen();
  ask();
  take_request();
  request.reset();
  listener.reset();
  ASSERT_OK(create_qp(server.get(), IBV_QPT_UD));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(CmUd, AQuestionIsCalledOff) {
  listen();
  ask();
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_CONNECT_ERROR);
}

}  // namespace
}  // namespace weft::test
