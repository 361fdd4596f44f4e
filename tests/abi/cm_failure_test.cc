// Connections that do not come about, and those that are lost.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/rdma_option.h"
#include "tests/abi/cm_child.h"
#include "tests/abi/cm_fixture.h"
#include "tests/support/counted.h"

namespace weft::test {
namespace {

class CmFailure : public CmTest {
 protected:
  // The peer of `server`, whose request waits, has gone. Its FIN may be on the way still: then the
  // accept has a connection, which ends.
  void expect_deserted() {
    std::array<uint8_t, 16> in{};
    ibv_mr* mr = rdma_reg_msgs(server.get(), in.data(), in.size());
    ASSERT_OK(rdma_post_recv(server.get(), nullptr, in.data(), in.size(), mr));
    if (rdma_accept(server.get(), nullptr) == 0) {
      expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
      expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    } else {
      EXPECT_EQ(errno, ECONNRESET);
      EXPECT_EQ(server->qp->state, IBV_QPS_ERR);
      EXPECT_OK(rdma_reject(server.get(), nullptr, 0));
    }
    // Either way what was posted comes back.
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_recv_comp(server.get(), &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_OK(rdma_dereg_mr(mr));
  }
};

TEST_F(CmFailure, RejectCarriesPrivateData) {
  const Counted rejections("cm_rejected");
  const Counted failures("dial_failed");
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  const auto reason = bytes(100, 3);
  ASSERT_OK(rdma_reject(server.get(), reason.data(), 100));
  const OwnedEvent rejected = expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(rejected, nullptr);
  EXPECT_EQ(rejected->status, 28);
  EXPECT_EQ(private_data(*rejected), reason);
  rejections.expect({{"by_program", 1}});
  failures.expect({{"rejected", 1}});
  EXPECT_EQ(client->qp->state, IBV_QPS_ERR);
  EXPECT_ERRNO(EINVAL, rdma_accept(server.get(), nullptr));
}

TEST_F(CmFailure, DestroyingARequestRejectsIt) {
  const Counted rejections("cm_rejected");
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  server.reset(expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  server.reset();
  expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  rejections.expect({{"id_gone", 1}});
}

// Nobody has looked at the request yet.
TEST_F(CmFailure, DestroyingTheListenerRejectsItsRequests) {
  const Counted rejections("cm_rejected");
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  pollfd p{passive->fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 10'000), 1);
  listener.reset();
  expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  rejections.expect({{"id_gone", 1}});
}

TEST_F(CmFailure, DestroyingTheChannelRejectsItsRequests) {
  const Counted rejections("cm_rejected");
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  pollfd p{passive->fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 10'000), 1);
  passive.reset();
  expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  rejections.expect({{"id_gone", 1}});
  // The listener is there still, and nobody to tell of the next one.
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  rejections.expect({{"id_gone", 1}, {"channel_gone", 1}});
}

TEST_F(CmFailure, NobodyListens) {
  uint16_t port;
  {
    const OwnedId gone = listen_on(passive.get());
    port = port_of(gone);
  }
  client = resolved(active.get(), port);
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 8);
}

TEST_F(CmFailure, WhoAsksOnceIsToldAtOnceThatNobodyListens) {
  const Counted failures("dial_failed");
  uint16_t port = 0;
  {
    const OwnedId gone = listen_on(passive.get());
    port = port_of(gone);
  }
  client = resolved(active.get(), port);
  ASSERT_OK(create_qp(client.get()));
  const int no = 0;
  ASSERT_OK(rdma_set_option(client.get(), kWeftOptionLevel, kOptionAsksAgain, const_cast<int*>(&no),
                            sizeof no));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 8);
  failures.expect({{"nobody_listens", 1}});
}

// Server and client of ib_write_bw -R start at the same moment.
TEST_F(CmFailure, ListenerMayComeALittleLate) {
  using namespace std::chrono;
  OwnedId late;
  const auto in_time = [&] {
    late = make_id(passive.get());
    sockaddr_in at = loopback();
    EXPECT_OK(rdma_bind_addr(late.get(), any_of(at)));
    client = resolved(active.get(), port_of(late));
    EXPECT_OK(create_qp(client.get()));
    const auto begun = steady_clock::now();
    EXPECT_OK(rdma_connect(client.get(), nullptr));
    const bool quiet = quiet_for(active.get(), 20);
    EXPECT_OK(rdma_listen(late.get(), 0));
    // The last try comes between 172 and 300 ms, as late as timers are (kRefusalStands in
    // cm/retrying_start.cc).
    if (steady_clock::now() - begun > 150ms) return false;
    EXPECT_TRUE(quiet);
    return true;
  };
  // On a busy machine this thread may be away for longer than a refusal is waited out.
  for (int i = 0; i < 10 && !in_time(); ++i) {
    client.reset();
    late.reset();
  }
  const OwnedEvent asked = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(asked, nullptr);
  server.reset(asked->id);
  ASSERT_OK(create_qp(server.get()));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(CmFailure, PeerThatSpeaksSomethingElse) {
  const int server_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = loopback();
  socklen_t length = sizeof at;
  ASSERT_EQ(bind(server_fd, any_of(at), sizeof at), 0);
  ASSERT_EQ(getsockname(server_fd, any_of(at), &length), 0);
  ASSERT_EQ(listen(server_fd, 1), 0);
  client = resolved(active.get(), ntohs(at.sin_port));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const int peer = accept(server_fd, nullptr, nullptr);
  const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
  ASSERT_EQ(write(peer, text, sizeof text), static_cast<ssize_t>(sizeof text));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_CONNECT_ERROR);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, -EPROTO);
  close(peer);
  close(server_fd);
}

TEST_F(CmFailure, GarbageToTheListenerDisturbsNobody) {
  listener = listen_on(passive.get());
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = loopback(port_of(listener));
  ASSERT_EQ(connect(fd, any_of(at), sizeof at), 0);
  const char text[] = "GET / HTTP/1.1\r\n\r\n and some more to fill the frame";
  ASSERT_EQ(write(fd, text, sizeof text), static_cast<ssize_t>(sizeof text));
  char byte;
  EXPECT_LE(read(fd, &byte, 1), 0) << "closed without a word";
  close(fd);
  EXPECT_TRUE(quiet_for(passive.get(), 20));
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  server.reset(expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST)->id);
}

TEST_F(CmFailure, PeerThatLeavesBeforeAnybodyLooksIsNotSeen) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  pollfd p{passive->fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 10'000), 1);
  client.reset();
  for (int i = 0; i < 200 && !quiet_for(passive.get(), 0); ++i) usleep(10'000);
  EXPECT_TRUE(quiet_for(passive.get(), 0));
}

TEST_F(CmFailure, AcceptingAPeerThatLeft) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  server.reset(expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  ASSERT_OK(create_qp(server.get()));
  client.reset();
  expect_deserted();
}

TEST_F(CmFailure, DisconnectWhileConnecting) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_CONNECT_ERROR);
}

TEST_F(CmFailure, DestroyingTheQueuePairWhileConnecting) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  rdma_destroy_qp(client.get());
  expect_event(active.get(), RDMA_CM_EVENT_CONNECT_ERROR);
}

TEST_F(CmFailure, CallsInTheWrongStateAreRefused) {
  client = make_id(active.get());
  EXPECT_ERRNO(EINVAL, rdma_resolve_route(client.get(), 2000));
  EXPECT_ERRNO(EINVAL, rdma_disconnect(client.get()));
  EXPECT_ERRNO(EINVAL, rdma_establish(client.get()));
  rdma_conn_param p = parameters();
  EXPECT_ERRNO(EINVAL, rdma_connect(client.get(), &p));
  EXPECT_ERRNO(EINVAL, rdma_accept(client.get(), &p));
  EXPECT_ERRNO(EINVAL, rdma_reject(client.get(), nullptr, 0));
  EXPECT_ERRNO(EINVAL, create_qp(client.get())) << "not on a device";
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  int mask = 0;
  EXPECT_ERRNO(EINVAL, rdma_init_qp_attr(client.get(), &a, &mask));
  client = resolved(active.get(), 9);
  EXPECT_ERRNO(EINVAL, rdma_connect(client.get(), nullptr))
      << "neither a queue pair nor parameters";
  EXPECT_ERRNO(EINVAL, rdma_resolve_route(client.get(), 2000)) << "twice";
  a.qp_state = IBV_QPS_RTR;
  EXPECT_ERRNO(EINVAL, rdma_init_qp_attr(client.get(), &a, &mask)) << "no peer yet";
  EXPECT_ERRNO(EINVAL, rdma_listen(client.get(), 1));
}

// --- processes that die

rdma_cm_id* child_listens(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  sockaddr_in at = loopback();
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0 ||
      rdma_bind_addr(id, any_of(at)) != 0 || rdma_listen(id, 0) != 0) {
    _exit(2);
  }
  return id;
}

rdma_cm_id* child_connects(rdma_event_channel* channel, uint16_t port) {
  rdma_cm_id* id = nullptr;
  sockaddr_in to = loopback(port);
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0 ||
      rdma_resolve_addr(id, nullptr, any_of(to), 2000) != 0 || next_event(channel) == nullptr ||
      rdma_resolve_route(id, 2000) != 0 || next_event(channel) == nullptr || create_qp(id) != 0 ||
      rdma_connect(id, nullptr) != 0) {
    _exit(2);
  }
  return id;
}

TEST_F(CmFailure, ServerDiesBeforeItLooksAtTheRequest) {
  const Child child([](int ready) {
    rdma_event_channel* c = rdma_create_event_channel();
    tell_port(ready, child_listens(c));
    pollfd p{c->fd, POLLIN, 0};
    poll(&p, 1, -1);
    tell(ready);
  });
  client = resolved(active.get(), child.await_port());
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  child.await();
  child.kill(SIGKILL);
  expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
}

TEST_F(CmFailure, ServerDiesWhileConnected) {
  const Child child([](int ready) {
    rdma_event_channel* c = rdma_create_event_channel();
    tell_port(ready, child_listens(c));
    rdma_cm_event* e = nullptr;
    if (rdma_get_cm_event(c, &e) != 0 || create_qp(e->id) != 0 ||
        rdma_accept(e->id, nullptr) != 0) {
      _exit(2);
    }
    tell(ready);
  });
  client = resolved(active.get(), child.await_port());
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  child.await();
  std::array<uint8_t, 16> in{};
  ibv_mr* mr = rdma_reg_msgs(client.get(), in.data(), in.size());
  ASSERT_OK(rdma_post_recv(client.get(), nullptr, in.data(), in.size(), mr));
  child.kill(SIGKILL);
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_recv_comp(client.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_OK(rdma_dereg_mr(mr));
}

TEST_F(CmFailure, ClientDiesWhileConnected) {
  listener = listen_on(passive.get());
  const Child child([port = port_of(listener)](int ready) {
    rdma_event_channel* c = rdma_create_event_channel();
    child_connects(c, port);
    if (next_event(c) == nullptr) _exit(2);
    tell(ready);
  });
  server.reset(expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  ASSERT_OK(create_qp(server.get()));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  child.await();
  child.kill(SIGKILL);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmFailure, ClientDiesWhileItsRequestWaits) {
  listener = listen_on(passive.get());
  std::optional<Child> child;
  child.emplace([port = port_of(listener)](int ready) {
    child_connects(rdma_create_event_channel(), port);
    tell(ready);
  });
  server.reset(expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  ASSERT_OK(create_qp(server.get()));
  child.reset();
  expect_deserted();
}

// The parent's objects are dead in a child; it makes its own.
TEST_F(CmFailure, ParentsObjectsAreDeadInAChild) {
  connect_pair();
  const Child child([&](int ready) {
    rdma_cm_event* e = nullptr;
    sockaddr_in at = loopback();
    const bool dead = rdma_disconnect(client.get()) == -1 && errno == EIO &&
                      rdma_get_cm_event(active.get(), &e) == -1 && errno == EIO &&
                      rdma_listen(client.get(), 1) == -1 &&
                      rdma_bind_addr(client.get(), any_of(at)) == -1;
    if (!dead) _exit(2);
    rdma_destroy_id(client.get());
    rdma_destroy_event_channel(active.get());
    rdma_event_channel* own = rdma_create_event_channel();
    if (own == nullptr) _exit(3);
    child_listens(own);
    tell(ready);
  });
  child.await();
  EXPECT_TRUE(quiet_for(active.get(), 50)) << "nothing of it reached the parent's connection";
  ASSERT_OK(rdma_disconnect(client.get()));
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
}

// A child that outlives its parent must not keep the parent's port or connections alive.
TEST_F(CmFailure, ChildHoldsNoneOfTheParentsSockets) {
  connect_pair();
  const uint16_t port = port_of(listener);
  const Child child([](int ready) { tell(ready); });
  child.await();
  listener.reset();
  const OwnedId again = make_id(passive.get());
  sockaddr_in at = loopback(port);
  EXPECT_OK(rdma_bind_addr(again.get(), any_of(at)));
  EXPECT_OK(rdma_listen(again.get(), 1));
}

}  // namespace
}  // namespace weft::test
