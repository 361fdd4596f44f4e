// UC by rdma_cm: a listener of RDMA_PS_TCP hears both, and the client's queue pair decides.
#include "tests/abi/cm_child.h"
#include "tests/abi/cm_datagram_fixture.h"
#include "tests/support/closed_port.h"
#include "tests/support/counted.h"

namespace weft::test {
namespace {

class CmUc : public CmTest {
 protected:
  void ask(const std::vector<uint8_t>& data = {}) {
    if (listener == nullptr) listener = listen_on(passive.get());
    client = resolved(active.get(), port_of(listener));
    ASSERT_OK(create_qp(client.get(), IBV_QPT_UC));
    rdma_conn_param p = parameters(data);
    ASSERT_OK(rdma_connect(client.get(), &p));
  }
  void take_request() {
    request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server.reset(request->id);
  }
  void accept(const std::vector<uint8_t>& data = {}) {
    ASSERT_OK(create_qp(server.get(), IBV_QPT_UC));
    rdma_conn_param p = parameters(data);
    ASSERT_OK(rdma_accept(server.get(), &p));
  }
  void connect_uc() {
    ask();
    take_request();
    request.reset();
    accept();
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  }
  // The other side hears of the end, within the time that an event may take.
  void forget(OwnedId& id) {
    request.reset();
    id.reset();
  }

  OwnedEvent request;
};

TEST_F(CmUc, BothSidesSend) {
  connect_uc();
  EXPECT_EQ(client->qp->qp_type, IBV_QPT_UC);
  exchange(client.get(), server.get(), 1);
  exchange(server.get(), client.get(), 2);
}

TEST_F(CmUc, PrivateDataGoesBothWays) {
  const auto asked = bytes(248, 1);
  const auto answered = bytes(196, 2);
  ask(asked);
  take_request();
  EXPECT_EQ(private_data(*request), asked);
  accept(answered);
  EXPECT_TRUE(private_data(*expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED)).empty());
  EXPECT_EQ(private_data(*expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED)), answered);
  request.reset();
}

TEST_F(CmUc, ARejectionSaysWhy) {
  const Counted rejections("wdp_rejected");
  const Counted failures("wdp_call_failed");
  ask();
  take_request();
  const auto why = bytes(148, 3);
  ASSERT_OK(rdma_reject(server.get(), why.data(), static_cast<uint8_t>(why.size())));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 28);  // consumer defined
  EXPECT_EQ(private_data(*e), why);
  rejections.expect({{"application", 1}});
  failures.expect({{"application", 1}});
  request.reset();
}

TEST_F(CmUc, AListenerTakesRcAndUcAtOnce) {
  connect_uc();
  const OwnedId uc_client = std::move(client);
  const OwnedId uc_server = std::move(server);
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(client.get(), &p));
  take_request();
  ASSERT_OK(create_qp(server.get()));
  ASSERT_OK(rdma_accept(server.get(), &p));
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  request.reset();
  exchange(client.get(), server.get(), 1);
  exchange(uc_client.get(), uc_server.get(), 2);
  exchange(uc_server.get(), uc_client.get(), 3);
}

// spec/wdp 4.9: where that port is taken it serves RC alone and says so, whoever looks at the log.
TEST_F(CmUc, AListenerWhosePortIsTakenSaysThatItServesRcAlone) {
  // A port that is free for TCP, and taken for UDP: not the first one always.
  int taken = -1;
  bool bound = false;
  for (int i = 0; i < 100 && !bound; ++i) {
    if (taken >= 0) close(taken);
    taken = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = loopback();
    socklen_t length = sizeof at;
    ASSERT_OK(bind(taken, any_of(at), sizeof at));
    ASSERT_OK(getsockname(taken, any_of(at), &length));
    listener = make_id(passive.get());
    bound = rdma_bind_addr(listener.get(), any_of(at)) == 0;
  }
  ASSERT_TRUE(bound);
  testing::internal::CaptureStderr();
  EXPECT_OK(rdma_listen(listener.get(), 0));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("RC alone is served"), std::string::npos) << said;
  EXPECT_NE(said.find(std::to_string(port_of(listener))), std::string::npos) << said;
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(client.get(), &p));
  take_request();
  request.reset();
  close(taken);
}

TEST_F(CmUc, AQueuePairOfTheOtherKindIsRefused) {
  ask();
  take_request();
  ASSERT_OK(create_qp(server.get()));
  rdma_conn_param p = parameters();
  EXPECT_ERRNO(EINVAL, rdma_accept(server.get(), &p));
  rdma_destroy_qp(server.get());
  accept();
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  request.reset();
}

TEST_F(CmUc, AListenerOfDatagramsHasNoConnections) {
  listener = make_id(passive.get(), RDMA_PS_UDP);
  sockaddr_in at = loopback();
  ASSERT_OK(rdma_bind_addr(listener.get(), any_of(at)));
  ASSERT_OK(rdma_listen(listener.get(), 0));
  ask();
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 8);  // invalid service id
}

// As InfiniBand's rdma_cm has it, and not after the 12.7 s of a peer that answers nothing.
TEST_F(CmUc, NobodyListens) {
  const Counted failures("wdp_call_failed");
  const ClosedPort port;
  client = resolved(active.get(), port.number());
  ASSERT_OK(create_qp(client.get(), IBV_QPT_UC));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(client.get(), &p));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 8);  // invalid service id
  EXPECT_TRUE(private_data(*e).empty());
  failures.expect({{"no_listener", 1}});
}

TEST_F(CmUc, ADisconnectEndsBothSides) {
  connect_uc();
  std::vector<uint8_t> in(100);
  ibv_mr* mr = rdma_reg_msgs(server.get(), in.data(), in.size());
  ASSERT_OK(rdma_post_recv(server.get(), &in, in.data(), in.size(), mr));
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_recv_comp(server.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_OK(rdma_disconnect(server.get()));
  EXPECT_OK(rdma_dereg_mr(mr));
}

// What is posted before the disconnect still goes out.
TEST_F(CmUc, MessagesOverAListenersSocketArriveInOrder) {
  connect_uc();
  for (unsigned i = 0; i < 50; ++i) {
    exchange(client.get(), server.get(), i);
    exchange(server.get(), client.get(), i + 100);
  }
}

TEST_F(CmUc, EndpointsWaitForTheirEvents) {
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_qp_type = IBV_QPT_UC;
  hints.ai_flags = RAI_PASSIVE;
  rdma_addrinfo* res = nullptr;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "0", &hints, &res), 0);
  ibv_qp_init_attr a = qp_attributes();
  rdma_cm_id* id = nullptr;
  ASSERT_OK(rdma_create_ep(&id, res, nullptr, &a));
  listener.reset(id);
  rdma_freeaddrinfo(res);
  ASSERT_OK(rdma_listen(listener.get(), 0));
  const uint16_t port = port_of(listener);

  const Child peer{[&](int ready) {
    hints.ai_flags = 0;
    rdma_addrinfo* to = nullptr;
    if (rdma_getaddrinfo("127.0.0.1", std::to_string(port).c_str(), &hints, &to) != 0) _exit(2);
    rdma_cm_id* own = nullptr;
    ibv_qp_init_attr b = qp_attributes();
    if (rdma_create_ep(&own, to, nullptr, &b) != 0) _exit(3);
    if (rdma_connect(own, nullptr) != 0) _exit(4);
    tell(ready);
    rdma_disconnect(own);
  }};
  rdma_cm_id* requested = nullptr;
  ASSERT_OK(rdma_get_request(listener.get(), &requested));
  server.reset(requested);
  EXPECT_EQ(server->qp->qp_type, IBV_QPT_UC);
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  peer.await();
}

// --- the end, at any moment

TEST_F(CmUc, AClientIsDestroyedWhileItAsks) {
  ask();
  take_request();
  forget(client);
  // The server finds out later; nothing is broken.
  accept();
}

TEST_F(CmUc, ARequestIsDestroyedWithoutAnAnswer) {
  ask();
  take_request();
  forget(server);
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 28);
}

TEST_F(CmUc, AListenerIsDestroyedWithRequestsThatNobodyTook) {
  ask();
  pollfd p{passive->fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 10'000), 1);
  listener.reset();
  expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
}

TEST_F(CmUc, ARequestOutlivesItsListener) {
  ask();
  take_request();
  request.reset();
  listener.reset();
  accept();
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  exchange(client.get(), server.get(), 4);
}

TEST_F(CmUc, AnAnswerIsDestroyedBeforeThePeerHasIt) {
  ask();
  take_request();
  accept();
  forget(server);
  // The peer has the answer, and was never told that nobody is there any more: its keepalives find
  // out (spec/wdp 4.1).
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  const OwnedEvent e = late_event(active.get(), 60);
  ASSERT_NE(e, nullptr);
  EXPECT_STREQ(rdma_event_str(e->event), rdma_event_str(RDMA_CM_EVENT_DISCONNECTED));
}

TEST_F(CmUc, AnEndOfAConnectionIsDestroyed) {
  connect_uc();
  server.reset();
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  client.reset();
  connect_uc();
  client.reset();
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmUc, AQueuePairIsDestroyedUnderItsConnection) {
  connect_uc();
  rdma_destroy_qp(client.get());
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmUc, AConnectIsCalledOff) {
  ask();
  take_request();
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_CONNECT_ERROR);
  request.reset();
}

// Its kernel says so, when the send window asks. The call to a port that is open and says nothing
// is given up after 12.7 s, and keepalives would take 15 s.
TEST_F(CmUc, APeerThatIsKilledIsMissedByWhoSends) {
  listener = listen_on(passive.get());
  auto peer = std::make_unique<Child>([port = port_of(listener), this](int ready) {
    active.reset(rdma_create_event_channel());
    client = resolved(active.get(), port);
    if (create_qp(client.get(), IBV_QPT_UC) != 0) _exit(2);
    rdma_conn_param p = parameters();
    if (rdma_connect(client.get(), &p) != 0) _exit(3);
    expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
    tell(ready);
    pause();
  });
  take_request();
  accept();
  request.reset();
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  peer->await();

  const SilentPort silent;
  client = resolved(passive.get(), silent.number());
  ASSERT_OK(create_qp(client.get(), IBV_QPT_UC));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(client.get(), &p));
  peer.reset();

  OwnedEvent e;
  std::vector<uint8_t> message = bytes(1 << 20, 1);
  ibv_mr* mr = rdma_reg_msgs(server.get(), message.data(), message.size());
  ASSERT_NE(mr, nullptr);
  for (int sent = 0; e == nullptr && sent < 10'000; ++sent) {
    (void)rdma_post_send(server.get(), nullptr, message.data(), message.size(), mr,
                         IBV_SEND_SIGNALED);
    ibv_wc wc{};
    (void)ibv_poll_cq(server->send_cq, 1, &wc);
    if (!quiet_for(passive.get(), 5)) e = next_event(passive.get());
  }
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->id, server.get());
  EXPECT_STREQ(rdma_event_str(e->event), rdma_event_str(RDMA_CM_EVENT_DISCONNECTED));
  EXPECT_OK(rdma_dereg_mr(mr));
}

// Three peers are killed at once, each in another phase: nobody says anything for them.
TEST_F(CmUc, APeerThatIsKilledIsMissed) {
  listener = listen_on(passive.get());
  const uint16_t port = port_of(listener);
  const auto call = [&](bool to_the_end) {
    return [this, port, to_the_end](int ready) {
      active.reset(rdma_create_event_channel());
      client = resolved(active.get(), port);
      if (create_qp(client.get(), IBV_QPT_UC) != 0) _exit(2);
      rdma_conn_param p = parameters();
      if (rdma_connect(client.get(), &p) != 0) _exit(3);
      if (to_the_end) expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
      tell(ready);
      if (!to_the_end) next_event(active.get());  // asks on, until it is killed
    };
  };
  auto deaf = std::make_unique<Child>([](int ready) {
    const OwnedChannel own{rdma_create_event_channel()};
    rdma_cm_id* id = nullptr;
    sockaddr_in at = loopback();
    if (rdma_create_id(own.get(), &id, nullptr, RDMA_PS_TCP) != 0) _exit(2);
    if (rdma_bind_addr(id, any_of(at)) != 0 || rdma_listen(id, 0) != 0) _exit(3);
    tell_port(ready, id);
    next_event(own.get());
    tell(ready);
    pause();
  });
  // A server that has the request and never answers.
  client = resolved(active.get(), deaf->await_port());
  ASSERT_OK(create_qp(client.get(), IBV_QPT_UC));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(client.get(), &p));
  deaf->await();
  deaf.reset();

  auto settled = std::make_unique<Child>(call(true));
  take_request();
  accept();
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  settled->await();
  settled.reset();
  const OwnedId connected = std::move(server);

  auto asking = std::make_unique<Child>(call(false));
  asking->await();
  take_request();
  asking.reset();
  accept();
  request.reset();

  OwnedEvent e = late_event(active.get(), 40);
  ASSERT_NE(e, nullptr);
  // Its kernel says that its port is closed.
  EXPECT_STREQ(rdma_event_str(e->event), rdma_event_str(RDMA_CM_EVENT_REJECTED));
  EXPECT_EQ(e->status, 8);
  bool unreachable = false;
  bool disconnected = false;
  while (!unreachable || !disconnected) {
    e = late_event(passive.get(), 40);
    ASSERT_NE(e, nullptr);
    if (e->event == RDMA_CM_EVENT_UNREACHABLE) {
      EXPECT_EQ(e->id, server.get());
      EXPECT_EQ(e->status, -ETIMEDOUT);
      unreachable = true;
    } else {
      EXPECT_STREQ(rdma_event_str(e->event), rdma_event_str(RDMA_CM_EVENT_DISCONNECTED));
      EXPECT_EQ(e->id, connected.get());
      disconnected = true;
    }
  }
}

}  // namespace
}  // namespace weft::test
