// Many connections, at once and one after the other.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

using CmMany = CmTest;

TEST_F(CmMany, ManyAtOnce) {
  constexpr size_t kMany = 300;
  listener = listen_on(passive.get(), 3);
  std::vector<OwnedId> clients;
  std::vector<OwnedId> servers;
  for (size_t i = 0; i < kMany; ++i) {
    clients.push_back(resolved(active.get(), port_of(listener)));
    ASSERT_OK(create_qp(clients.back().get()));
    ASSERT_OK(rdma_connect(clients.back().get(), nullptr));
  }
  for (size_t established = 0; established < kMany;) {
    const OwnedEvent e = next_event(passive.get());
    ASSERT_NE(e, nullptr);
    if (e->event == RDMA_CM_EVENT_ESTABLISHED) {
      ++established;
      continue;
    }
    ASSERT_EQ(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    servers.emplace_back(e->id);
    ASSERT_OK(create_qp(e->id));
    ASSERT_OK(rdma_accept(e->id, nullptr));
  }
  for (size_t i = 0; i < kMany; ++i) expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  // Requests need not come in the order of the connects.
  const auto peer = std::find_if(servers.begin(), servers.end(), [&](const OwnedId& s) {
    return rdma_get_dst_port(s.get()) == rdma_get_src_port(clients.front().get());
  });
  ASSERT_NE(peer, servers.end());
  exchange(clients.front().get(), peer->get(), 7);
  for (const OwnedId& c : clients) ASSERT_OK(rdma_disconnect(c.get()));
  for (size_t i = 0; i < kMany; ++i) {
    expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
    expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  }
}

// One thread serves a channel, as rping -P does; others connect, send and leave.
TEST_F(CmMany, ThreadsConnectAtTheSameTime) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 15;
  listener = listen_on(passive.get());
  const uint16_t port = port_of(listener);
  std::thread serving([&] {
    for (int gone = 0; gone < kThreads * kRounds;) {
      OwnedEvent e = next_event(passive.get());
      ASSERT_NE(e, nullptr);
      rdma_cm_id* id = e->id;
      const rdma_cm_event_type kind = e->event;
      e.reset();
      if (kind == RDMA_CM_EVENT_CONNECT_REQUEST) {
        ASSERT_OK(create_qp(id));
        ASSERT_OK(rdma_accept(id, nullptr));
      } else if (kind == RDMA_CM_EVENT_DISCONNECTED) {
        rdma_destroy_ep(id);
        ++gone;
      }
    }
  });
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([&] {
      const OwnedChannel channel{rdma_create_event_channel()};
      for (int i = 0; i < kRounds; ++i) {
        const OwnedId id = resolved(channel.get(), port);
        ASSERT_OK(create_qp(id.get()));
        ASSERT_OK(rdma_connect(id.get(), nullptr));
        expect_event(channel.get(), RDMA_CM_EVENT_ESTABLISHED);
        ASSERT_OK(rdma_disconnect(id.get()));
        expect_event(channel.get(), RDMA_CM_EVENT_DISCONNECTED);
      }
    });
  }
  for (std::thread& c : clients) c.join();
  serving.join();
}

size_t descriptors() {
  size_t n = 0;
  for (int fd = 0; fd < 8192; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) ++n;
  }
  return n;
}

TEST_F(CmMany, NoDescriptorIsLeftBehind) {
  connect_pair();  // the first one opens what stays open
  server.reset();
  client.reset();
  listener.reset();
  const size_t before = descriptors();
  constexpr size_t kRounds = 50;
  // Numbers of queue pairs rest for a while, so that new ports for them may be opened.
  constexpr size_t kPorts = 12;
  for (size_t i = 0; i < kRounds; ++i) {
    connect_pair();
    if (HasFatalFailure()) return;
    ASSERT_OK(rdma_disconnect(i % 2 == 0 ? client.get() : server.get()));
    expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
    expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    client.reset();
    server.reset();
    listener.reset();
  }
  // The last sockets close when their peers have.
  for (int i = 0; i < 500 && descriptors() > before + kPorts; ++i) usleep(10'000);
  EXPECT_LE(descriptors(), before + kPorts);
}

}  // namespace
}  // namespace weft::test
