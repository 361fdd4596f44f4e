// rsocket(7): two sides in one process, and peers of a program's own making that speak the protocol
// wrongly (spec/rsockets).
#include <fcntl.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <sys/eventfd.h>

#include <future>
#include <numeric>
#include <thread>

#include "tests/abi/rsockets.h"

namespace weft::test {
namespace {

using namespace rsockets;

std::vector<uint8_t> bytes(size_t count, uint32_t seed) {
  std::vector<uint8_t> b(count);
  for (size_t i = 0; i < count; ++i) b[i] = static_cast<uint8_t>((i * 2654435761U + seed) >> 11);
  return b;
}

// Each side's socket has a thread that sends and one that receives.
TEST(Rsocket, BothDirectionsAtOnce) {
  Pair p = connected_pair();
  const auto up = bytes(3'000'001, 1);
  const auto down = bytes(2'000'003, 2);
  auto client = std::async(std::launch::async, [&] { send_all(p.client.fd(), up); });
  auto server = std::async(std::launch::async, [&] { send_all(p.server.fd(), down); });
  auto got_down =
      std::async(std::launch::async, [&] { return receive(p.client.fd(), down.size()); });
  EXPECT_TRUE(receive(p.server.fd(), up.size()) == up);
  EXPECT_TRUE(got_down.get() == down);
}

// Many small messages use up credits, few bytes.
TEST(Rsocket, SmallMessagesWaitForCredits) {
  Pair p = connected_pair();
  const auto all = bytes(5'000, 3);
  auto sender = std::async(std::launch::async, [&] {
    for (const uint8_t b : all) {
      if (rsend(p.client.fd(), &b, 1, 0) != 1) return errno;
    }
    return 0;
  });
  EXPECT_TRUE(receive(p.server.fd(), all.size()) == all);
  EXPECT_EQ(sender.get(), 0);
}

TEST(Rsocket, NamesAreThoseOfBothSides) {
  const Socket listener = listen_here();
  Pair p = connect_to(listener, open_socket());
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  EXPECT_OK(rgetpeername(p.client.fd(), any_of(peer), &size));
  EXPECT_EQ(peer.sin_port, name_of(listener.fd()).sin_port);
  EXPECT_OK(rgetpeername(p.server.fd(), any_of(peer), &size));
  EXPECT_EQ(peer.sin_port, name_of(p.client.fd()).sin_port);
  EXPECT_EQ(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

TEST(Rsocket, TcpInfoSaysWhetherItIsConnected) {
  Pair p = connected_pair();
  tcp_info info{};
  info.tcpi_total_retrans = 77;
  socklen_t size = sizeof info;
  EXPECT_OK(rgetsockopt(p.client.fd(), IPPROTO_TCP, TCP_INFO, &info, &size));
  EXPECT_EQ(info.tcpi_state, TCP_ESTABLISHED);
  EXPECT_EQ(info.tcpi_total_retrans, 0u);
  const Socket idle = open_socket();
  EXPECT_OK(rgetsockopt(idle.fd(), IPPROTO_TCP, TCP_INFO, &info, &size));
  EXPECT_EQ(info.tcpi_state, TCP_CLOSE);
}

TEST(Rsocket, AShutdownEndsOneDirection) {
  Pair p = connected_pair();
  const auto question = bytes(400'000, 4);
  auto sender = std::async(std::launch::async, [&] {
    send_all(p.client.fd(), question);
    return rshutdown(p.client.fd(), SHUT_WR);
  });
  EXPECT_TRUE(receive(p.server.fd(), question.size()) == question);
  uint8_t more = 0;
  EXPECT_EQ(rrecv(p.server.fd(), &more, 1, 0), 0);
  EXPECT_EQ(sender.get(), 0);
  EXPECT_ERRNO(EPIPE, static_cast<int>(rsend(p.client.fd(), &more, 1, 0)));
  const auto answer = bytes(300'000, 5);
  auto answers = std::async(std::launch::async, [&] { send_all(p.server.fd(), answer); });
  EXPECT_TRUE(receive(p.client.fd(), answer.size()) == answer);
}

TEST(Rsocket, WhatWasSentBeforeACloseArrives) {
  Pair p = connected_pair();
  const auto last = bytes(50'000, 6);
  send_all(p.client.fd(), last);
  p.client.close();
  EXPECT_EQ(events_of(p.server.fd(), POLLIN, -1), POLLIN)
      << "there is something to read before the end";
  EXPECT_TRUE(receive(p.server.fd(), last.size()) == last);
  uint8_t more = 0;
  EXPECT_EQ(rrecv(p.server.fd(), &more, 1, 0), 0);
  EXPECT_ERRNO(ECONNRESET, static_cast<int>(rsend(p.server.fd(), &more, 1, 0)));
  EXPECT_EQ(events_of(p.server.fd(), POLLIN | POLLOUT, 0), POLLIN | POLLOUT | POLLHUP);
}

// More messages than there are receives, and nobody at the other side calls in: who goes does not
// wait for that.
TEST(Rsocket, ACloseWaitsForNoProgramAtTheOtherSide) {
  const Socket listener = listen_here();
  const int few = 16;
  EXPECT_OK(rsetsockopt(listener.fd(), SOL_RDMA, RDMA_RQSIZE, &few, sizeof few));
  Pair p = connect_to(listener, open_socket());
  EXPECT_OK(rfcntl(p.client.fd(), F_SETFL, O_NONBLOCK));
  std::vector<uint8_t> sent;
  for (uint8_t b = 1; rsend(p.client.fd(), &b, 1, 0) == 1; ++b) sent.push_back(b);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GT(sent.size(), 3u);
  p.client.close();
  EXPECT_TRUE(receive(p.server.fd(), sent.size()) == sent);
}

// Whatever the order in which the sides say that they are done, no side is told that something
// broke.
TEST(Rsocket, AnOrderlyEndIsNoError) {
  uint8_t b = 0;
  {
    Pair p = connected_pair();
    EXPECT_OK(rshutdown(p.client.fd(), SHUT_RDWR));
    EXPECT_EQ(rrecv(p.server.fd(), &b, 1, 0), 0);
    p.server.close();
    // The end of the data may come before that of the connection.
    EXPECT_NE(events_of(p.client.fd(), 0, -1) & POLLHUP, 0);
    EXPECT_EQ(rrecv(p.client.fd(), &b, 1, 0), 0);
    EXPECT_EQ(error_of(p.client.fd()), 0);
  }
  Pair p = connected_pair();
  EXPECT_OK(rshutdown(p.client.fd(), SHUT_WR));
  EXPECT_EQ(rrecv(p.server.fd(), &b, 1, 0), 0);
  EXPECT_OK(rshutdown(p.server.fd(), SHUT_WR));
  EXPECT_EQ(rrecv(p.client.fd(), &b, 1, 0), 0);
  p.client.close();
  EXPECT_NE(events_of(p.server.fd(), 0, -1) & POLLHUP, 0);
  EXPECT_EQ(error_of(p.server.fd()), 0);
}

// "Too many clients."
TEST(Rsocket, AConnectionThatIsClosedAtOnceIsAnEndOfData) {
  const Socket listener = listen_here();
  sockaddr_in there = name_of(listener.fd());
  auto server = std::async(
      std::launch::async, [&listener] { return rclose(raccept(listener.fd(), nullptr, nullptr)); });
  const Socket client = open_socket();
  EXPECT_OK(rconnect(client.fd(), any_of(there), sizeof there));
  uint8_t b = 0;
  EXPECT_EQ(rrecv(client.fd(), &b, 1, 0), 0) << strerror(errno);
  EXPECT_EQ(server.get(), 0);
}

TEST(Rsocket, AConnectThatIsAskedAgainComesToItsEnd) {
  const Socket listener = listen_here();
  sockaddr_in there = name_of(listener.fd());
  auto accepted = std::async(std::launch::async,
                             [&listener] { return raccept(listener.fd(), nullptr, nullptr); });
  const Socket client{rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
  int error = 0;
  do {
    error = errno_of(rconnect(client.fd(), any_of(there), sizeof there));
  } while (error == EINPROGRESS || error == EALREADY);
  EXPECT_EQ(error, EISCONN);
  const Socket server{accepted.get()};
}

TEST(Rsocket, AListenerThatIsClosedEndsWhoWaitsForIt) {
  // The calls begin before it is closed, in the midst of that, or after it.
  for (int round = 0; round < 30; ++round) {
    Socket listener = listen_here();
    const auto accept = [fd = listener.fd()] { return errno_of(raccept(fd, nullptr, nullptr)); };
    auto first = std::async(std::launch::async, accept);
    auto second = std::async(std::launch::async, accept);
    listener.close();
    EXPECT_EQ(first.get(), EBADF) << round;
    EXPECT_EQ(second.get(), EBADF) << round;
  }
}

TEST(Rsocket, PeekLeavesAndPiecesAreFilledInTurn) {
  Pair p = connected_pair();
  const auto all = bytes(3'000, 7);
  send_all(p.client.fd(), all);
  std::vector<uint8_t> peeked(1'000);
  EXPECT_EQ(events_of(p.server.fd(), POLLIN, -1), POLLIN);
  EXPECT_EQ(rrecv(p.server.fd(), peeked.data(), peeked.size(), MSG_PEEK), 1'000);
  EXPECT_TRUE(std::equal(peeked.begin(), peeked.end(), all.begin()));
  std::vector<uint8_t> parts(all.size());
  iovec pieces[] = {{parts.data(), 1},
                    {parts.data() + 1, 0},
                    {parts.data() + 1, 1'999},
                    {parts.data() + 2'000, 1'000}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 4;
  EXPECT_EQ(rrecvmsg(p.server.fd(), &message, MSG_WAITALL), 3'000);
  EXPECT_TRUE(parts == all);
}

TEST(Rsocket, ASocketThatDoesNotBlockSaysSo) {
  Pair p = connected_pair();
  EXPECT_OK(rfcntl(p.client.fd(), F_SETFL, O_NONBLOCK));
  EXPECT_EQ(rfcntl(p.client.fd(), F_GETFL), O_RDWR | O_NONBLOCK);
  uint8_t b = 0;
  EXPECT_ERRNO(EAGAIN, static_cast<int>(rrecv(p.client.fd(), &b, 1, 0)));
  EXPECT_ERRNO(EAGAIN, static_cast<int>(rrecv(p.server.fd(), &b, 1, MSG_DONTWAIT)));
  const auto much = bytes(1'000'000, 8);
  size_t sent = 0;
  for (ssize_t n = 0; (n = rsend(p.client.fd(), much.data() + sent, much.size() - sent, 0)) > 0;)
    sent += static_cast<size_t>(n);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GT(sent, 0u);
  EXPECT_LT(sent, much.size()) << "nobody reads";
  EXPECT_EQ(events_of(p.client.fd(), POLLOUT, 0), 0);
  auto got = std::async(std::launch::async, [&] { return receive(p.server.fd(), much.size()); });
  while (sent < much.size()) {
    EXPECT_EQ(events_of(p.client.fd(), POLLOUT, -1), POLLOUT);
    const ssize_t n = rsend(p.client.fd(), much.data() + sent, much.size() - sent, 0);
    if (n > 0) sent += static_cast<size_t>(n);
  }
  EXPECT_TRUE(got.get() == much);
}

TEST(Rsocket, AConnectThatDoesNotBlockEndsInPoll) {
  const Socket listener = listen_here();
  sockaddr_in there = name_of(listener.fd());
  Socket client{rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP)};
  ASSERT_GE(client.fd(), 0);
  EXPECT_ERRNO(EINPROGRESS, rconnect(client.fd(), any_of(there), sizeof there));
  EXPECT_EQ(events_of(listener.fd(), POLLIN, -1), POLLIN);
  const Socket server{raccept(listener.fd(), nullptr, nullptr)};
  EXPECT_GE(server.fd(), 0) << strerror(errno);
  EXPECT_EQ(events_of(client.fd(), POLLOUT, -1), POLLOUT);
  EXPECT_EQ(error_of(client.fd()), 0);
  send_all(client.fd(), bytes(100, 9));
  EXPECT_TRUE(receive(server.fd(), 100) == bytes(100, 9));
  EXPECT_ERRNO(EISCONN, rconnect(client.fd(), any_of(there), sizeof there));
}

TEST(Rsocket, WhereNobodyListensAConnectIsRefused) {
  sockaddr_in there{};
  {
    const Socket listener = listen_here();
    there = name_of(listener.fd());
  }
  const Socket blocking = open_socket();
  EXPECT_ERRNO(ECONNREFUSED, rconnect(blocking.fd(), any_of(there), sizeof there));
  const Socket other{rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
  EXPECT_ERRNO(EINPROGRESS, rconnect(other.fd(), any_of(there), sizeof there));
  EXPECT_NE(events_of(other.fd(), POLLOUT, -1) & POLLERR, 0);
  EXPECT_EQ(error_of(other.fd()), ECONNREFUSED);
  EXPECT_EQ(error_of(other.fd()), 0) << "it is told once";
}

// A thread sleeps in rpoll; what wakes it is data for a rsocket, then a descriptor of another kind.
TEST(Rsocket, PollWatchesDescriptorsOfEachKind) {
  Pair p = connected_pair();
  const int plain = eventfd(0, EFD_NONBLOCK);
  pollfd both[] = {{p.server.fd(), POLLIN, 0}, {plain, POLLIN, 0}, {-1, POLLIN, 0}};
  EXPECT_EQ(rpoll(both, 3, 0), 0);
  auto sleeper = std::async(std::launch::async, [&both] { return rpoll(both, 3, -1); });
  send_all(p.client.fd(), {1, 2, 3});
  EXPECT_EQ(sleeper.get(), 1);
  EXPECT_EQ(both[0].revents, POLLIN);
  EXPECT_EQ(both[1].revents, 0);
  (void)receive(p.server.fd(), 3);
  auto again = std::async(std::launch::async, [&both] { return rpoll(both, 3, -1); });
  EXPECT_EQ(eventfd_write(plain, 1), 0);
  EXPECT_EQ(again.get(), 1);
  EXPECT_EQ(both[0].revents, 0);
  EXPECT_EQ(both[1].revents, POLLIN);

  fd_set reads;
  fd_set writes;
  FD_ZERO(&reads);
  FD_ZERO(&writes);
  FD_SET(p.server.fd(), &reads);
  FD_SET(plain, &reads);
  FD_SET(p.server.fd(), &writes);
  EXPECT_EQ(rselect(std::max(plain, p.server.fd()) + 1, &reads, &writes, nullptr, nullptr), 2);
  EXPECT_FALSE(FD_ISSET(p.server.fd(), &reads));
  EXPECT_TRUE(FD_ISSET(plain, &reads));
  EXPECT_TRUE(FD_ISSET(p.server.fd(), &writes));
  ::close(plain);
}

// One thread sleeps in rpoll for a socket while another one waits in rrecv for the same, and takes
// what would have woken the first.
TEST(Rsocket, AThreadThatPollsIsToldOfWhatAnotherTook) {
  Pair p = connected_pair();
  for (uint8_t round = 0; round < 50; ++round) {
    auto reader = std::async(std::launch::async, [&] { return receive(p.server.fd(), 1); });
    auto sleeper = std::async(std::launch::async, [&] {
      while (events_of(p.server.fd(), POLLIN, -1) != POLLIN) {
      }
      return true;
    });
    send_all(p.client.fd(), {round, 0xEE});
    EXPECT_EQ(reader.get(), std::vector<uint8_t>{round});
    EXPECT_TRUE(sleeper.get());
    EXPECT_EQ(receive(p.server.fd(), 1), std::vector<uint8_t>{0xEE});
  }
}

TEST(Rsocket, MappedMemoryIsWrittenByThePeer) {
  const Socket listener = listen_here();
  const int slots = 2;
  EXPECT_OK(rsetsockopt(listener.fd(), SOL_RDMA, RDMA_IOMAPSIZE, &slots, sizeof slots));
  Socket client = open_socket();
  EXPECT_OK(rsetsockopt(client.fd(), SOL_RDMA, RDMA_IOMAPSIZE, &slots, sizeof slots));
  Pair p = connect_to(listener, std::move(client));

  std::vector<uint8_t> memory(300'000);
  std::vector<uint8_t> other(1'000);
  std::vector<uint8_t> third(10);
  EXPECT_EQ(riomap(p.server.fd(), memory.data(), memory.size(), PROT_WRITE, 0, 0x10000), 0x10000);
  EXPECT_EQ(riomap(p.server.fd(), other.data(), other.size(), PROT_WRITE, 0, -1),
            static_cast<off_t>(reinterpret_cast<uint64_t>(other.data())));
  EXPECT_ERRNO(ENOMEM, static_cast<int>(
                           riomap(p.server.fd(), third.data(), third.size(), PROT_WRITE, 0, 0)));
  send_all(p.server.fd(), {1});  // the peer knows the mappings when it has this
  (void)receive(p.client.fd(), 1);

  const auto data = bytes(250'000, 10);
  EXPECT_EQ(riowrite(p.client.fd(), data.data(), data.size(), 0x10000 + 7, 0), data.size());
  EXPECT_EQ(static_cast<ssize_t>(riowrite(p.client.fd(), data.data(), 1, 0x5, 0)), -1);
  EXPECT_EQ(errno, EINVAL) << "nothing is mapped there";
  send_all(p.client.fd(), {2});
  (void)receive(p.server.fd(), 1);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin() + 7));
  EXPECT_EQ(memory[6], 0);
  EXPECT_EQ(memory[7 + data.size()], 0);
  EXPECT_OK(riounmap(p.server.fd(), memory.data(), memory.size()));
  EXPECT_ERRNO(EINVAL, riounmap(p.server.fd(), memory.data(), memory.size()));
}

TEST(Rsocket, NumbersThatAreNoSocketAreRefused) {
  pollfd p{};
  EXPECT_ERRNO(EBADF, rclose(12345));
  EXPECT_ERRNO(EBADF, rlisten(0, 1));
  EXPECT_ERRNO(EBADF, static_cast<int>(rsend(-1, &p, 1, 0)));
  EXPECT_ERRNO(EAFNOSUPPORT, rsocket(AF_UNIX, SOCK_STREAM, 0));
  EXPECT_ERRNO(EOPNOTSUPP, rsocket(AF_INET, SOCK_SEQPACKET, 0));
  EXPECT_ERRNO(EOPNOTSUPP, rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
  const Socket s = open_socket();
  EXPECT_ERRNO(ENOTCONN, static_cast<int>(rsend(s.fd(), &p, 1, 0)));
  EXPECT_ERRNO(ENOTCONN, rshutdown(s.fd(), SHUT_RDWR));
}

TEST(RsocketHostile, ARequestThatIsNoRsocketsIsRejectedAndTheListenerGoesOn) {
  const Socket listener = listen_here();
  auto accepted = std::async(std::launch::async,
                             [&listener] { return raccept(listener.fd(), nullptr, nullptr); });
  Peer nothing{listener};
  EXPECT_EQ(nothing.connect({}), RDMA_CM_EVENT_REJECTED);
  Peer another_version{listener};
  auto data = another_version.private_data();
  data[0] = 7;
  EXPECT_EQ(another_version.connect(data), RDMA_CM_EVENT_REJECTED);
  Peer right{listener};
  EXPECT_EQ(right.connect(right.private_data()), RDMA_CM_EVENT_ESTABLISHED);
  const Socket s{accepted.get()};
  EXPECT_GE(s.fd(), 0);
}

class RsocketWord : public testing::TestWithParam<uint32_t> {};

// Bytes that nobody granted, nothing at all, and words of no meaning.
TEST_P(RsocketWord, EndsTheConnection) {
  const Socket listener = listen_here();
  auto accepted = std::async(std::launch::async,
                             [&listener] { return raccept(listener.fd(), nullptr, nullptr); });
  Peer peer{listener};
  EXPECT_EQ(peer.connect(peer.private_data()), RDMA_CM_EVENT_ESTABLISHED);
  const Socket s{accepted.get()};
  ASSERT_GE(s.fd(), 0);
  peer.say(GetParam());
  uint8_t b = 0;
  EXPECT_ERRNO(EPROTO, static_cast<int>(rrecv(s.fd(), &b, 1, 0)));
  EXPECT_ERRNO(EPROTO, static_cast<int>(rsend(s.fd(), &b, 1, 0)));
  EXPECT_EQ(error_of(s.fd()), EPROTO);
}
INSTANTIATE_TEST_SUITE_P(Hostile, RsocketWord,
                         testing::Values(0x0001'0001U, 0x1FFF'FFFFU, 0x0000'0000U, 0x2000'0001U,
                                         0x4000'0000U, 0xA000'0000U));

// Who goes without a word may have been killed: that is not the end of a stream.
TEST(RsocketHostile, APeerThatGoesWithoutAWordResets) {
  const Socket listener = listen_here();
  auto accepted = std::async(std::launch::async,
                             [&listener] { return raccept(listener.fd(), nullptr, nullptr); });
  Peer peer{listener};
  EXPECT_EQ(peer.connect(peer.private_data()), RDMA_CM_EVENT_ESTABLISHED);
  const Socket s{accepted.get()};
  ASSERT_GE(s.fd(), 0);
  auto reader = std::async(std::launch::async, [&s] {
    uint8_t b = 0;
    return errno_of(static_cast<int>(rrecv(s.fd(), &b, 1, 0)));
  });
  peer.leave();
  EXPECT_EQ(reader.get(), ECONNRESET);
}

}  // namespace
}  // namespace weft::test
