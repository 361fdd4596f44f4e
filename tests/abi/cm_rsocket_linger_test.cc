// rsocket(7): how long rclose waits for what was sent (spec/rsockets 5).
#include "tests/abi/rsockets.h"

namespace weft::test {
namespace {

using namespace rsockets;

void set_linger(const Socket& s, int seconds) {
  const linger l{1, seconds};
  EXPECT_OK(rsetsockopt(s.fd(), SOL_SOCKET, SO_LINGER, &l, sizeof l));
}

TEST(RsocketLinger, IsOffAtFirst) {
  const Socket s = open_socket();
  linger l{7, 7};
  socklen_t size = sizeof l;
  EXPECT_OK(rgetsockopt(s.fd(), SOL_SOCKET, SO_LINGER, &l, &size));
  EXPECT_EQ(l.l_onoff, 0);
  EXPECT_EQ(l.l_linger, 0);
}

// A peer with credits for more messages than it has receives: what is beyond these waits for ever.
TEST(RsocketLinger, ItsTimeEndsAClose) {
  const Socket listener = listen_here();
  auto accepted = std::async(std::launch::async,
                             [&listener] { return raccept(listener.fd(), nullptr, nullptr); });
  Peer peer{listener};
  auto data = peer.private_data();
  data[2] = 1;  // 256 more
  EXPECT_EQ(peer.connect(data), RDMA_CM_EVENT_ESTABLISHED);
  Socket s{accepted.get()};
  ASSERT_GE(s.fd(), 0);
  int sent = 0;
  for (uint8_t b = 1; rsend(s.fd(), &b, 1, MSG_DONTWAIT) == 1; ++b) ++sent;
  ASSERT_GT(sent, 110);
  set_linger(s, 1);
  auto closing = std::async(std::launch::async, [&s] { s.close(); });
  EXPECT_EQ(closing.wait_for(std::chrono::seconds{60}), std::future_status::ready);
  peer.leave();
}

TEST(RsocketLinger, WithoutTimeACloseResets) {
  Pair p = connected_pair();
  set_linger(p.client, 0);
  p.client.close();
  uint8_t b = 0;
  EXPECT_ERRNO(ECONNRESET, static_cast<int>(rrecv(p.server.fd(), &b, 1, 0)));
}

TEST(RsocketLinger, WithTimeACloseSaysTheEnd) {
  Pair p = connected_pair();
  const auto last = bytes(50'000, 6);
  set_linger(p.client, 1'000);
  send_all(p.client.fd(), last);
  p.client.close();
  EXPECT_TRUE(receive(p.server.fd(), last.size()) == last);
  uint8_t b = 0;
  EXPECT_EQ(rrecv(p.server.fd(), &b, 1, 0), 0);
}

}  // namespace
}  // namespace weft::test
