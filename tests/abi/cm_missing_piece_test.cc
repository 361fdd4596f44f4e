// As api_missing_piece_test.cc, of librdmacm's calls.
#include <rdma/rsocket.h>

#include "tests/abi/cm_fixture.h"
#include "tests/abi/missing_piece.h"
#include "tests/support/refused_calls.h"
#include "tests/support/sanitizer.h"

#ifndef WEFT_SANITIZER

namespace weft::test {
namespace {

// What sockets of this process are at a port. Other processes may be there, too, once it is free.
struct OwnSockets {
  bool any = false;
  bool listening = false;
};
OwnSockets own_sockets(in_port_t port, int type) {
  constexpr int kMostDescriptors = 4096;
  OwnSockets own;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    if (getsockname(fd, any_of(at), &size) != 0 || at.sin_port != port) continue;
    int value = 0;
    socklen_t length = sizeof value;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length) != 0 || value != type) continue;
    own.any = true;
    own.listening |= getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0 && value != 0;
  }
  return own;
}

int listen_without(rdma_port_space space, long n) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  CHECK_IN_CHILD(2, rdma_create_id(channel, &id, nullptr, space) == 0);
  sockaddr_in at = loopback();
  CHECK_IN_CHILD(3, rdma_bind_addr(id, any_of(at)) == 0);
  const in_port_t port = rdma_get_src_port(id);
  const MissingPiece piece{n};
  const int result = errno_of(rdma_listen(id, 4));
  const bool missed = MissingPiece::missed();
  CHECK_IN_CHILD(4, result == 0 || (missed && result == ENOMEM));
  const bool by_tcp = space == RDMA_PS_TCP;
  const int type = by_tcp ? SOCK_STREAM : SOCK_DGRAM;
  CHECK_IN_CHILD(5, result == 0 || !own_sockets(port, type).listening);
  CHECK_IN_CHILD(6, own_sockets(port, type).any);
  CHECK_IN_CHILD(7, result == 0 || rdma_listen(id, 4) == 0);
  CHECK_IN_CHILD(8, own_sockets(port, type).listening == by_tcp);
  CHECK_IN_CHILD(9, rdma_destroy_id(id) == 0);
  CHECK_IN_CHILD(10, !own_sockets(port, type).any);
  return missed ? kMissed : kLasted;
}

TEST(CmMissingPiece, AnIdThatIsNotToldToListenDoesNot) {
  without_each_piece([](long n) { return listen_without(RDMA_PS_TCP, n); });
}
TEST(CmMissingPiece, AnIdOfDatagramsListensAfterItHadNoMemoryTo) {
  without_each_piece([](long n) { return listen_without(RDMA_PS_UDP, n); });
}

// The kernel watches as many sockets of a user as fs.epoll.max_user_watches says. This thread has
// no more from here on. False: there are no filters here.
bool no_more_watches() {
  return refuse_call(SYS_epoll_ctl, ENOSPC);
}

TEST(CmMissingWatch, AnIdThatCannotListenSaysSo) {
  if (in_child([] { return no_more_watches() ? 0 : 1; }) != 0) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  for (const rdma_port_space space : {RDMA_PS_TCP, RDMA_PS_UDP}) {
    EXPECT_EQ(in_child([&] {
                rdma_event_channel* const channel = rdma_create_event_channel();
                rdma_cm_id* id = nullptr;
                CHECK_IN_CHILD(2, rdma_create_id(channel, &id, nullptr, space) == 0);
                sockaddr_in at = loopback();
                CHECK_IN_CHILD(3, rdma_bind_addr(id, any_of(at)) == 0);
                CHECK_IN_CHILD(14, no_more_watches());
                CHECK_IN_CHILD(4, errno_of(rdma_listen(id, 4)) == ENOMEM);
                const OwnSockets own = own_sockets(rdma_get_src_port(id),
                                                   space == RDMA_PS_TCP ? SOCK_STREAM : SOCK_DGRAM);
                CHECK_IN_CHILD(5, own.any && !own.listening);
                return 0;
              }),
              0);
  }
}

TEST(CmMissingWatch, AnIdThatCannotConnectSaysSo) {
  if (in_child([] { return no_more_watches() ? 0 : 1; }) != 0) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  EXPECT_EQ(in_child([] {
              rdma_event_channel* const channel = rdma_create_event_channel();
              rdma_cm_id* listener = nullptr;
              rdma_cm_id* client = nullptr;
              CHECK_IN_CHILD(2, rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP) == 0);
              CHECK_IN_CHILD(3, rdma_create_id(channel, &client, nullptr, RDMA_PS_TCP) == 0);
              sockaddr_in at = loopback();
              CHECK_IN_CHILD(4, rdma_bind_addr(listener, any_of(at)) == 0);
              CHECK_IN_CHILD(5, rdma_listen(listener, 4) == 0);
              at.sin_port = rdma_get_src_port(listener);
              CHECK_IN_CHILD(6, rdma_resolve_addr(client, nullptr, any_of(at), 2000) == 0);
              CHECK_IN_CHILD(7, next_event(channel)->event == RDMA_CM_EVENT_ADDR_RESOLVED);
              CHECK_IN_CHILD(8, rdma_resolve_route(client, 2000) == 0);
              CHECK_IN_CHILD(9, next_event(channel)->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
              rdma_conn_param p = parameters();
              CHECK_IN_CHILD(10, create_qp(client) == 0);
              CHECK_IN_CHILD(14, no_more_watches());
              CHECK_IN_CHILD(11, rdma_connect(client, &p) == 0);
              const OwnedEvent told = next_event(channel);
              CHECK_IN_CHILD(12, told->event == RDMA_CM_EVENT_CONNECT_ERROR);
              CHECK_IN_CHILD(13, told->status == -ENOMEM);
              return 0;
            }),
            0);
}

// What accept() says is what the peer hears.
TEST(CmMissingPiece, AnAcceptThatFailsIsNoneForThePeerEither) {
  without_each_piece([](long n) {
    rdma_event_channel* const passive = rdma_create_event_channel();
    rdma_event_channel* const active = rdma_create_event_channel();
    rdma_cm_id* listener = nullptr;
    rdma_cm_id* client = nullptr;
    CHECK_IN_CHILD(2, rdma_create_id(passive, &listener, nullptr, RDMA_PS_TCP) == 0);
    CHECK_IN_CHILD(3, rdma_create_id(active, &client, nullptr, RDMA_PS_TCP) == 0);
    sockaddr_in at = loopback();
    CHECK_IN_CHILD(4, rdma_bind_addr(listener, any_of(at)) == 0 && rdma_listen(listener, 4) == 0);
    at.sin_port = rdma_get_src_port(listener);
    CHECK_IN_CHILD(5, rdma_resolve_addr(client, nullptr, any_of(at), 2000) == 0);
    CHECK_IN_CHILD(6, next_event(active)->event == RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK_IN_CHILD(7, rdma_resolve_route(client, 2000) == 0);
    CHECK_IN_CHILD(8, next_event(active)->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_conn_param p = parameters();
    CHECK_IN_CHILD(9, create_qp(client) == 0 && rdma_connect(client, &p) == 0);
    const OwnedEvent request = next_event(passive);
    CHECK_IN_CHILD(10, request != nullptr && request->event == RDMA_CM_EVENT_CONNECT_REQUEST);
    rdma_cm_id* const server = request->id;
    CHECK_IN_CHILD(11, create_qp(server) == 0);
    const std::vector<uint8_t> words = bytes(50, 3);
    p = parameters(words);
    const MissingPiece piece{n};
    const int result = errno_of(rdma_accept(server, &p));
    const bool missed = MissingPiece::missed();
    CHECK_IN_CHILD(12, result == 0 || missed);
    if (result != 0) rdma_destroy_ep(server);
    const OwnedEvent told = next_event(active);
    CHECK_IN_CHILD(13, told != nullptr);
    CHECK_IN_CHILD(14, (told->event == RDMA_CM_EVENT_ESTABLISHED) == (result == 0));
    CHECK_IN_CHILD(15, result != 0 || private_data(*told) == words);
    return missed ? kMissed : kLasted;
  });
}

TEST(CmMissingPiece, TheFirstCallOfRsocketsFails) {
  without_each_piece(
      [](long n) {
        const MissingPiece piece{n};
        const int result = errno_of(rfcntl(0, F_GETFL));
        const bool missed = MissingPiece::missed();
        CHECK_IN_CHILD(2, result == (missed ? ENOMEM : EBADF));
        return missed ? kMissed : kLasted;
      },
      0);
}

}  // namespace
}  // namespace weft::test

#endif  // WEFT_SANITIZER
