// rsocket(7) of type SOCK_DGRAM (spec/rsockets 7).
#include <fcntl.h>
#include <rdma/rsocket.h>

#include <vector>

#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

// Bound to a free port of the loopback.
class Datagrams {
 public:
  Datagrams() : fd_(rsocket(AF_INET, SOCK_DGRAM, 0)) {
    EXPECT_GE(fd_, 0) << strerror(errno);
    sockaddr_in here = loopback();
    EXPECT_OK(rbind(fd_, any_of(here), sizeof here));
  }
  ~Datagrams() {
    if (fd_ >= 0) {
      EXPECT_OK(rclose(fd_));
    }
  }
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  sockaddr_in name() const {
    sockaddr_in name{};
    socklen_t size = sizeof name;
    EXPECT_OK(rgetsockname(fd_, any_of(name), &size));
    EXPECT_EQ(size, sizeof name);
    return name;
  }
  void connect_to(const Datagrams& other) {
    sockaddr_in there = other.name();
    EXPECT_OK(rconnect(fd_, any_of(there), sizeof there));
  }

 private:
  int fd_;
};

// As iperf3 does: a listener of streams at a number, and then datagrams at the same.
TEST(RsocketDatagrams, AListenerOfStreamsLeavesItsNumberToThem) {
  const int listener = rsocket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(listener, 0) << strerror(errno);
  sockaddr_in here = loopback();
  EXPECT_OK(rbind(listener, any_of(here), sizeof here));
  EXPECT_OK(rlisten(listener, 8));
  socklen_t size = sizeof here;
  EXPECT_OK(rgetsockname(listener, any_of(here), &size));
  const int datagrams = rsocket(AF_INET, SOCK_DGRAM, 0);
  ASSERT_GE(datagrams, 0) << strerror(errno);
  EXPECT_OK(rbind(datagrams, any_of(here), sizeof here));
  EXPECT_OK(rclose(datagrams));
  EXPECT_OK(rclose(listener));
}

TEST(RsocketDatagrams, AMessageSaysWhomItIsFrom) {
  const Datagrams a;
  const Datagrams b;
  sockaddr_in there = b.name();
  const auto sent = bytes(9000, 1);
  ASSERT_EQ(rsendto(a.fd(), sent.data(), sent.size(), 0, any_of(there), sizeof there), 9000);
  std::vector<uint8_t> got(10'000);
  sockaddr_in from{};
  socklen_t size = sizeof from;
  ASSERT_EQ(rrecvfrom(b.fd(), got.data(), got.size(), 0, any_of(from), &size), 9000);
  got.resize(9000);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(from.sin_port, a.name().sin_port);
  EXPECT_EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  // Nothing of another message is behind one.
  ASSERT_EQ(rsendto(b.fd(), sent.data(), 7, 0, any_of(from), size), 7);
  ASSERT_EQ(rsendto(b.fd(), sent.data() + 7, 9, 0, any_of(from), size), 9);
  EXPECT_EQ(rrecv(a.fd(), got.data(), got.size(), MSG_PEEK), 7);
  EXPECT_EQ(rrecv(a.fd(), got.data(), got.size(), 0), 7);
  EXPECT_EQ(rrecv(a.fd(), got.data(), got.size(), 0), 9);
  EXPECT_EQ(got[0], sent[7]);
}

TEST(RsocketDatagrams, EveryCallMovesBytes) {
  Datagrams a;
  Datagrams b;
  a.connect_to(b);
  b.connect_to(a);
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  EXPECT_OK(rgetpeername(a.fd(), any_of(peer), &size));
  EXPECT_EQ(peer.sin_port, b.name().sin_port);

  auto sent = bytes(700, 2);
  iovec from[] = {{sent.data(), 300}, {sent.data() + 300, 400}};
  msghdr message{};
  message.msg_iov = from;
  message.msg_iovlen = 2;
  EXPECT_EQ(rsend(a.fd(), sent.data(), sent.size(), 0), 700);
  EXPECT_EQ(rwrite(a.fd(), sent.data(), sent.size()), 700);
  EXPECT_EQ(rwritev(a.fd(), from, 2), 700);
  EXPECT_EQ(rsendmsg(a.fd(), &message, 0), 700);

  for (int call = 0; call < 4; ++call) {
    std::vector<uint8_t> got(701);
    iovec to[] = {{got.data(), 100}, {got.data() + 100, 601}};
    msghdr into{};
    into.msg_iov = to;
    into.msg_iovlen = 2;
    const ssize_t n = call == 0   ? rrecv(b.fd(), got.data(), got.size(), 0)
                      : call == 1 ? rread(b.fd(), got.data(), got.size())
                      : call == 2 ? rreadv(b.fd(), to, 2)
                                  : rrecvmsg(b.fd(), &into, 0);
    ASSERT_EQ(n, 700) << call;
    got.resize(700);
    EXPECT_EQ(got, sent) << call;
  }
}

// One descriptor of each kind: rpoll(3) and rselect(3) tell the one that has something.
TEST(RsocketDatagrams, RpollKnowsThemBesideStreams) {
  const Datagrams a;
  const Datagrams b;
  const int listener = rsocket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here = loopback();
  ASSERT_OK(rbind(listener, any_of(here), sizeof here));
  ASSERT_OK(rlisten(listener, 1));
  pollfd all[] = {{listener, POLLIN, 0}, {b.fd(), POLLIN, 0}};
  EXPECT_EQ(rpoll(all, 2, 0), 0);
  sockaddr_in there = b.name();
  ASSERT_EQ(rsendto(a.fd(), "x", 1, 0, any_of(there), sizeof there), 1);
  EXPECT_EQ(rpoll(all, 2, -1), 1);
  EXPECT_EQ(all[0].revents, 0);
  EXPECT_EQ(all[1].revents, POLLIN);
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(listener, &readable);
  FD_SET(b.fd(), &readable);
  EXPECT_EQ(rselect(std::max(listener, b.fd()) + 1, &readable, nullptr, nullptr, nullptr), 1);
  EXPECT_TRUE(FD_ISSET(b.fd(), &readable));
  EXPECT_FALSE(FD_ISSET(listener, &readable));
  EXPECT_OK(rclose(listener));
}

TEST(RsocketDatagrams, OptionsAndFlags) {
  const Datagrams s;
  char byte = 0;
  EXPECT_ERRNO(EAGAIN, static_cast<int>(rrecv(s.fd(), &byte, 1, MSG_DONTWAIT)));
  EXPECT_EQ(rfcntl(s.fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_OK(rfcntl(s.fd(), F_SETFL, O_NONBLOCK));
  EXPECT_EQ(rfcntl(s.fd(), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  EXPECT_ERRNO(EAGAIN, static_cast<int>(rrecv(s.fd(), &byte, 1, 0)));
  EXPECT_ERRNO(EOPNOTSUPP, rfcntl(s.fd(), F_GETOWN));

  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_OK(rgetsockopt(s.fd(), SOL_SOCKET, SO_TYPE, &value, &size));
  EXPECT_EQ(value, SOCK_DGRAM);
  value = 8192;
  EXPECT_OK(rsetsockopt(s.fd(), SOL_SOCKET, SO_RCVBUF, &value, sizeof value));
  EXPECT_OK(rgetsockopt(s.fd(), SOL_SOCKET, SO_RCVBUF, &value, &size));
  EXPECT_EQ(value, 16384);  // as the kernel has it
  for (const int name : {RDMA_SQSIZE, RDMA_RQSIZE, RDMA_INLINE}) {
    value = 77;
    EXPECT_OK(rsetsockopt(s.fd(), SOL_RDMA, name, &value, sizeof value));
    value = 0;
    EXPECT_OK(rgetsockopt(s.fd(), SOL_RDMA, name, &value, &size));
    EXPECT_EQ(value, 77) << name;
  }
  EXPECT_ERRNO(ENOPROTOOPT, rsetsockopt(s.fd(), SOL_RDMA, 12345, &value, sizeof value));
}

TEST(RsocketDatagrams, WhatOnlyStreamsHaveIsRefused) {
  Datagrams s;
  std::vector<uint8_t> memory(64);
  EXPECT_ERRNO(EOPNOTSUPP, rlisten(s.fd(), 1));
  EXPECT_ERRNO(EOPNOTSUPP, raccept(s.fd(), nullptr, nullptr));
  EXPECT_ERRNO(EOPNOTSUPP, static_cast<int>(riomap(s.fd(), memory.data(), 64, PROT_WRITE, 0, -1)));
  EXPECT_ERRNO(EOPNOTSUPP, riounmap(s.fd(), memory.data(), 64));
  EXPECT_ERRNO(EOPNOTSUPP, static_cast<int>(riowrite(s.fd(), memory.data(), 64, 0, 0)));
  const int number = s.release();
  EXPECT_OK(rclose(number));
  EXPECT_ERRNO(EBADF, rclose(number));
  EXPECT_ERRNO(EBADF, static_cast<int>(rsend(number, memory.data(), 1, 0)));
  EXPECT_LT(fcntl(number, F_GETFD), 0) << "the kernel's socket is still open";
}

}  // namespace
}  // namespace weft::test
