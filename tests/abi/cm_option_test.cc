// What rdma_set_option(3) does to the sockets, from their first packet on.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/rdma_option.h"
#include "tests/abi/cm_fixture.h"
#include "tests/support/rc_way.h"

namespace weft::test {
namespace {

class CmOption : public CmTest {
 protected:
  static void set_type_of_service(const OwnedId& id, uint8_t tos) {
    ASSERT_OK(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos));
  }
  // This process's connected socket whose peer, or which itself, is at `port`. -1: there is none.
  static int socket_at(uint16_t port, bool accepted) {
    for (int fd = 0; fd < 65'536; ++fd) {
      sockaddr_in local{};
      sockaddr_in peer{};
      socklen_t length = sizeof peer;
      if (getpeername(fd, any_of(peer), &length) != 0 || peer.sin_family != AF_INET) continue;
      length = sizeof local;
      if (getsockname(fd, any_of(local), &length) != 0) continue;
      if (ntohs(accepted ? local.sin_port : peer.sin_port) == port) return fd;
    }
    return -1;
  }
  static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_OK(getsockopt(fd, level, name, &value, &size));
    return value;
  }
};

TEST_F(CmOption, TypeOfServiceHoldsWhileTheConnectionIsMade) {
  if (rc_by_udp()) GTEST_SKIP() << "the connection is none of TCP (WEFT_RC=udp)";
  listener = make_id(passive.get());
  sockaddr_in at = loopback();
  ASSERT_OK(rdma_bind_addr(listener.get(), any_of(at)));
  set_type_of_service(listener, 0x28);
  ASSERT_OK(rdma_listen(listener.get(), 0));
  client = resolved(active.get(), port_of(listener));
  set_type_of_service(client, 0x48);
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  // The Request is out, and nobody has answered it.
  EXPECT_EQ(option(socket_at(port_of(listener), false), IPPROTO_IP, IP_TOS), 0x48);
  EXPECT_EQ(option(socket_at(port_of(listener), true), IPPROTO_IP, IP_TOS), 0x28);
}

TEST_F(CmOption, KeepalivesAreThoseOfTheSocket) {
  connect_pair();
  const int fd = socket_at(port_of(listener), false);
  const int other = socket_at(port_of(listener), true);
  if (rc_by_udp()) GTEST_SKIP() << "the connection is none of TCP (WEFT_RC=udp)";
  ASSERT_GE(fd, 0);
  EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1) << "the device's own";
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 10);
  const auto set = [&](Keepalive k) {
    ASSERT_OK(rdma_set_option(client.get(), kWeftOptionLevel, kOptionKeepalive, &k, sizeof k));
  };
  set({.idle = 0, .unacknowledged = 7000});
  EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 7000);
  EXPECT_EQ(option(other, SOL_SOCKET, SO_KEEPALIVE), 1) << "it is the other end's";
  set({.idle = 33, .interval = 4, .count = 5});
  EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 33);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 4);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 5);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  exchange(client.get(), server.get(), 1);
}

// One that is set before it connects.
TEST_F(CmOption, KeepalivesMayComeFirst) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  Keepalive k{.idle = 0};
  ASSERT_OK(rdma_set_option(client.get(), kWeftOptionLevel, kOptionKeepalive, &k, sizeof k));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  k = {.idle = 44};
  ASSERT_OK(rdma_set_option(server.get(), kWeftOptionLevel, kOptionKeepalive, &k, sizeof k));
  ASSERT_OK(create_qp(server.get()));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  const int fd = socket_at(port_of(listener), false);
  if (rc_by_udp()) GTEST_SKIP() << "the connection is none of TCP (WEFT_RC=udp)";
  ASSERT_GE(fd, 0);
  EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(option(socket_at(port_of(listener), true), IPPROTO_TCP, TCP_KEEPIDLE), 44);
}

}  // namespace
}  // namespace weft::test
