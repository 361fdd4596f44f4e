#include "abi/rsockets/settings.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <cerrno>

namespace weft::rsockets {
namespace {

int number(const Settings& s, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(s.get(level, name, &value, &size), 0);
  EXPECT_EQ(size, sizeof value);
  return value;
}

TEST(RsocketsSettings, AnOptionIsWhatItWasSetTo) {
  Settings s;
  const int on = 1;
  EXPECT_EQ(number(s, IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_EQ(s.set(IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
  EXPECT_EQ(number(s, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(number(s, SOL_SOCKET, SO_REUSEADDR), 0) << "another one stays";
  const int bytes = 300'000;
  EXPECT_EQ(s.set(SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
  EXPECT_EQ(s.sizes().receive_buffer, 299'904u) << "a whole number of 128";
  EXPECT_EQ(number(s, SOL_SOCKET, SO_RCVBUF), 299'904);
  const int slots = 200;
  EXPECT_EQ(s.set(SOL_RDMA, RDMA_IOMAPSIZE, &slots, sizeof slots), 0);
  EXPECT_EQ(number(s, SOL_RDMA, RDMA_IOMAPSIZE), 256) << "what the peer can be told";
}

TEST(RsocketsSettings, KeepalivesAreThoseOfTcp) {
  Settings s;
  EXPECT_EQ(s.keepalive().idle, 0) << "off";
  EXPECT_EQ(number(s, IPPROTO_TCP, TCP_KEEPIDLE), 7200);
  const int values[] = {30, 5, 3, 1};
  EXPECT_EQ(s.set(IPPROTO_TCP, TCP_KEEPIDLE, &values[0], sizeof(int)), 0);
  EXPECT_EQ(s.set(IPPROTO_TCP, TCP_KEEPINTVL, &values[1], sizeof(int)), 0);
  EXPECT_EQ(s.set(IPPROTO_TCP, TCP_KEEPCNT, &values[2], sizeof(int)), 0);
  EXPECT_EQ(s.keepalive().idle, 0) << "still off";
  EXPECT_EQ(s.set(SOL_SOCKET, SO_KEEPALIVE, &values[3], sizeof(int)), 0);
  const Keepalive wanted{.idle = 30, .interval = 5, .count = 3};
  EXPECT_EQ(s.keepalive(), wanted);
  for (const int bad : {0, -1, 40'000}) {
    EXPECT_EQ(s.set(IPPROTO_TCP, TCP_KEEPIDLE, &bad, sizeof bad), EINVAL) << bad;
    EXPECT_EQ(s.set(IPPROTO_TCP, TCP_KEEPINTVL, &bad, sizeof bad), EINVAL) << bad;
    EXPECT_EQ(s.set(IPPROTO_TCP, TCP_KEEPCNT, &bad, sizeof bad), EINVAL) << bad;
  }
  EXPECT_EQ(s.keepalive(), wanted);
}

TEST(RsocketsSettings, BuffersAndQueuesHaveBounds) {
  Settings s;
  for (const int bytes : {-1, 0, 1}) {
    EXPECT_EQ(s.set(SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    EXPECT_EQ(s.sizes().send_buffer, 4096u) << bytes;
  }
  const int much = INT32_MAX;
  EXPECT_EQ(s.set(SOL_SOCKET, SO_SNDBUF, &much, sizeof much), 0);
  EXPECT_EQ(s.sizes().send_buffer, 1u << 28);
  EXPECT_EQ(s.set(SOL_RDMA, RDMA_SQSIZE, &much, sizeof much), 0);
  EXPECT_EQ(s.sizes().send_queue, 0xFFFE);
  const int less = -1;
  EXPECT_EQ(s.set(SOL_RDMA, RDMA_SQSIZE, &less, sizeof less), EINVAL);
}

TEST(RsocketsSettings, WhatIsNotThereIsRefused) {
  Settings s;
  const int on = 1;
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(s.set(SOL_SOCKET, SO_BINDTODEVICE, &on, sizeof on), ENOPROTOOPT);
  EXPECT_EQ(s.get(SOL_SOCKET, SO_BINDTODEVICE, &value, &size), ENOPROTOOPT);
  EXPECT_EQ(s.set(IPPROTO_TCP, TCP_NODELAY, &on, 1), EINVAL) << "too short";
  EXPECT_EQ(s.set(IPPROTO_TCP, TCP_NODELAY, nullptr, sizeof on), EFAULT);
  EXPECT_EQ(s.get(IPPROTO_TCP, TCP_NODELAY, &value, nullptr), EFAULT);
}

// accept(2) does not hand O_NONBLOCK on.
TEST(RsocketsSettings, ACopyBlocks) {
  Settings s;
  s.set_nonblocking(true);
  const int bytes = 8192;
  EXPECT_EQ(s.set(SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
  const Settings copy = s;
  EXPECT_FALSE(copy.nonblocking());
  EXPECT_EQ(copy.sizes().send_buffer, 8192u);
}

}  // namespace
}  // namespace weft::rsockets
