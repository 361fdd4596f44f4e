// What rdma_set_option(3) does to the sockets, from their first packet on.
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

class CmOption : public CmTest {
 protected:
  static void set_type_of_service(const OwnedId& id, uint8_t tos) {
    ASSERT_OK(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos));
  }
  // The byte in the IP header of this process's connected socket whose peer, or which itself, is at
  // `port`. -1 when there is none.
  static int type_of_service(uint16_t port, bool accepted) {
    for (int fd = 0; fd < 65'536; ++fd) {
      sockaddr_in local{};
      sockaddr_in peer{};
      socklen_t length = sizeof peer;
      if (getpeername(fd, any_of(peer), &length) != 0 || peer.sin_family != AF_INET) continue;
      length = sizeof local;
      if (getsockname(fd, any_of(local), &length) != 0) continue;
      if (ntohs(accepted ? local.sin_port : peer.sin_port) != port) continue;
      int tos = -1;
      length = sizeof tos;
      if (getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &length) == 0) return tos;
    }
    return -1;
  }
};

TEST_F(CmOption, TypeOfServiceHoldsWhileTheConnectionIsMade) {
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
  EXPECT_EQ(type_of_service(port_of(listener), false), 0x48);
  EXPECT_EQ(type_of_service(port_of(listener), true), 0x28);
}

}  // namespace
}  // namespace weft::test
