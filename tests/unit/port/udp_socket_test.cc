// Real sockets on the loopback interface.

#include "port/udp_socket.h"

#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <poll.h>

#include <cerrno>

#include "tests/support/hex.h"

namespace weft::port {
namespace {

using test::Buffer;
using test::pattern;

constexpr Gid kLoopback = Gid::from_ipv4(INADDR_LOOPBACK);
constexpr Gid kOther = Gid::from_ipv4(INADDR_LOOPBACK + 1);
constexpr size_t kBuffer = 1 << 20;

UdpSocket make(int family, size_t buffer = kBuffer) {
  Fd fd{::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  EXPECT_TRUE(fd.valid());
  const int off = 0;
  if (family == AF_INET6) {
    EXPECT_EQ(::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), 0);
  }
  const Address any = Address::any(family, 0);
  EXPECT_EQ(::bind(fd.get(), any.get(), any.length), 0);
  return UdpSocket{std::move(fd), buffer};
}

bool have_ipv6() {
  const Fd fd{::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!fd.valid()) return false;
  Gid one;
  one.raw[15] = 1;
  const Address at = Address::from_gid(one, 0);
  return ::bind(fd.get(), at.get(), at.length) == 0;
}

bool readable(const UdpSocket& s) {
  pollfd p{.fd = s.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 10'000) == 1;
}

// The datagrams that make up `bytes` bytes, each by itself, whatever trains they came in.
std::vector<Buffer> receive_all(UdpSocket& s, size_t bytes) {
  std::vector<Buffer> all;
  Buffer place(65'536);
  for (size_t have = 0; have < bytes;) {
    const auto r = s.receive(place);
    if (r.would_block) {
      if (!readable(s)) break;
      continue;
    }
    EXPECT_EQ(r.error, 0);
    EXPECT_FALSE(r.truncated);
    for (size_t at = 0; at < r.bytes; at += r.segment) {
      const size_t n = std::min(r.segment, r.bytes - at);
      all.emplace_back(place.begin() + static_cast<ptrdiff_t>(at),
                       place.begin() + static_cast<ptrdiff_t>(at + n));
    }
    have += r.bytes;
  }
  return all;
}

class Udp : public ::testing::TestWithParam<int> {
 protected:
  Udp() : a(make(GetParam())), b(make(GetParam())) {
    to = Address::from_gid(kLoopback, b.local().port());
  }
  UdpSocket a;
  UdpSocket b;
  Address to;
  Segmentation segmentation;
};
INSTANTIATE_TEST_SUITE_P(Families, Udp, ::testing::Values(AF_INET, AF_INET6),
                         [](const auto& family) {
                           return family.param == AF_INET ? "Ipv4" : "DualStack";
                         });

// spec/wdp 5.4: DF is set except in big UD mode: what shares a socket with that mode
// keeps it.
TEST_P(Udp, EachTrainSaysWhetherItsDatagramsMayBeCutUp) {
  Buffer data = pattern(100, 3);
  const IoVec piece{data.data(), data.size()};
  const auto discovery = [&] {
    int mode = -1;
    socklen_t n = sizeof mode;
    EXPECT_EQ(::getsockopt(a.fd(), IPPROTO_IP, IP_MTU_DISCOVER, &mode, &n), 0);
    return mode;
  };
  EXPECT_EQ(discovery(), IP_PMTUDISC_PROBE);
  for (const bool cut : {true, true, false}) {
    const auto sent = a.send({.to = &to, .fragments = cut, .pieces = {&piece, 1}}, segmentation);
    EXPECT_EQ(sent.bytes, data.size());
    EXPECT_EQ(discovery(), cut ? IP_PMTUDISC_DONT : IP_PMTUDISC_PROBE);
  }
  EXPECT_EQ(receive_all(b, 300), (std::vector<Buffer>{data, data, data}));
}

TEST_P(Udp, ATrainArrivesAsItsDatagrams) {
  // Cut anywhere: pieces and datagrams have nothing to do with each other.
  Buffer data = pattern(44 * 1424 - 100, 7);
  const IoVec pieces[] = {
      {data.data(), 10}, {data.data() + 10, 5000}, {data.data() + 5010, data.size() - 5010}};
  const auto sent = a.send({.to = &to, .segment = 1424, .pieces = pieces}, segmentation);
  EXPECT_EQ(sent.bytes, data.size());
  const auto got = receive_all(b, data.size());
  ASSERT_EQ(got.size(), 44U);
  Buffer joined;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].size(), i + 1 < got.size() ? 1424U : 1324U);
    joined.insert(joined.end(), got[i].begin(), got[i].end());
  }
  EXPECT_TRUE(joined == data);
}

// Kernels, routes and devices that cannot: the datagrams go one by one.
TEST_P(Udp, WithoutSegmentationTheSameArrives) {
  segmentation.failed();
  Buffer data = pattern(150 * 100 + 17, 3);
  const IoVec pieces[] = {{data.data(), 333}, {data.data() + 333, data.size() - 333}};
  const auto sent = a.send({.to = &to, .segment = 100, .pieces = pieces}, segmentation);
  EXPECT_EQ(sent.bytes, data.size());
  EXPECT_TRUE(segmentation.refused());
  const auto got = receive_all(b, data.size());
  ASSERT_EQ(got.size(), 151U);
  EXPECT_EQ(got.back().size(), 17U);
  Buffer joined;
  for (const Buffer& d : got) joined.insert(joined.end(), d.begin(), d.end());
  EXPECT_TRUE(joined == data);
}

TEST_P(Udp, WhatTheKernelRefusesToCutGoesOneByOne) {
  // More datagrams than the kernel cuts in one call: EINVAL.
  Buffer data = pattern(600 * 10, 3);
  const IoVec piece{data.data(), data.size()};
  const auto sent = a.send({.to = &to, .segment = 10, .pieces = {&piece, 1}}, segmentation);
  EXPECT_EQ(sent.bytes, data.size());
  EXPECT_TRUE(segmentation.refused());
  EXPECT_EQ(receive_all(b, data.size()).size(), 600U);
}

TEST_P(Udp, RefusedSegmentationIsTriedAgainAfterAWhile) {
  segmentation.failed();
  Buffer data = pattern(20, 1);
  const IoVec piece{data.data(), data.size()};
  size_t trains = 0;
  for (; trains < 10'000 && segmentation.refused(); ++trains) {
    (void)a.send({.to = &to, .segment = 10, .pieces = {&piece, 1}}, segmentation);
    Buffer place(65'536);
    while (!b.receive(place).would_block) {
    }
  }
  EXPECT_FALSE(segmentation.refused());
  EXPECT_GT(trains, 1000U) << "not with every train";
}

TEST_P(Udp, AddressesAndTypeOfServiceAreTold) {
  Buffer data = pattern(100, 1);
  const IoVec piece{data.data(), data.size()};
  const Address other = Address::from_gid(kOther, b.local().port());
  const auto sent = a.send(
      {.to = &other, .from = kLoopback, .tos = 0x2e << 2 | 1, .segment = 0, .pieces = {&piece, 1}},
      segmentation);
  ASSERT_EQ(sent.bytes, data.size());
  ASSERT_TRUE(readable(b));
  Buffer place(65'536);
  const auto r = b.receive(place);
  EXPECT_EQ(r.bytes, data.size());
  EXPECT_EQ(r.segment, data.size());
  EXPECT_EQ(r.from.gid(), kLoopback);
  EXPECT_EQ(r.from.port(), a.local().port());
  EXPECT_EQ(r.to, kOther);
  EXPECT_NE(r.interface, 0U);
  EXPECT_EQ(r.tos, 0x2e << 2 | 1);
}

// Where nobody names a source the kernel takes 127.0.0.1 towards all of 127.0.0.0/8. Often enough
// that it is asked whether it would by itself (OwnSource).
TEST_P(Udp, TheSourceIsTheOneThatIsNamed) {
  Buffer data = pattern(64, 5);
  const IoVec piece{data.data(), data.size()};
  for (const Gid& from : {kLoopback, kOther}) {
    for (const Gid& there : {kLoopback, kOther}) {
      const Address at = Address::from_gid(there, b.local().port());
      for (int i = 0; i < 40; ++i) {
        ASSERT_EQ(a.send({.to = &at, .from = from, .pieces = {&piece, 1}}, segmentation).bytes,
                  64U);
        ASSERT_TRUE(readable(b));
        Buffer place(100);
        const auto r = b.receive(place);
        EXPECT_EQ(r.from.gid(), from) << "to " << there.to_string();
        EXPECT_EQ(r.to, there);
      }
    }
  }
}

// The usual one is told the kernel once (UsualTtl); nobody sees when.
TEST_P(Udp, EachDatagramHasItsHopLimit) {
  Buffer data = pattern(64, 6);
  const IoVec piece{data.data(), data.size()};
  int kernels = 0;
  socklen_t n = sizeof kernels;
  ASSERT_EQ(::getsockopt(a.fd(), IPPROTO_IP, IP_TTL, &kernels, &n), 0);
  const auto of_socket = [&] {
    int now = 0;
    EXPECT_EQ(::getsockopt(a.fd(), IPPROTO_IP, IP_TTL, &now, &n), 0);
    return now;
  };
  const auto pass = [&](uint8_t hops) {
    ASSERT_EQ(a.send({.to = &to, .hop_limit = hops, .pieces = {&piece, 1}}, segmentation).bytes,
              64U);
    ASSERT_TRUE(readable(b));
    Buffer place(100);
    EXPECT_EQ(b.receive(place).hop_limit, hops != 0 ? hops : kernels);
  };
  for (int i = 0; i < 20; ++i) pass(200);
  EXPECT_EQ(of_socket(), 200);
  // Those of another queue pair between them, and those of one that leaves it to the kernel.
  for (int i = 0; i < 20; ++i) {
    pass(100);
    pass(200);
  }
  EXPECT_EQ(of_socket(), 200);
  pass(0);
  EXPECT_EQ(of_socket(), kernels);
  for (int i = 0; i < 20; ++i) {
    pass(200);
    pass(0);
  }
  EXPECT_EQ(of_socket(), kernels);
}

// What comes alone is not put together, for it costs; what comes in a row is again, and nothing is
// lost on the way.
TEST_P(Udp, TrainsAreTakenAgainAfterALongPingPong) {
  if (!b.gathers()) GTEST_SKIP() << "no UDP_GRO";
  const auto asked = [&] {
    int on = -1;
    socklen_t n = sizeof on;
    EXPECT_EQ(::getsockopt(b.fd(), SOL_UDP, UDP_GRO, &on, &n), 0);
    return on;
  };
  EXPECT_EQ(asked(), 1);
  for (int i = 0; i < 300; ++i) {
    Buffer one = pattern(64, i);
    const IoVec piece{one.data(), one.size()};
    ASSERT_EQ(a.send({.to = &to, .pieces = {&piece, 1}}, segmentation).bytes, one.size());
    EXPECT_EQ(receive_all(b, 64), (std::vector<Buffer>{one}));
    Buffer place(100);
    EXPECT_TRUE(b.receive(place).would_block);
  }
  EXPECT_EQ(asked(), 0);
  // A busy machine may let the reader take each as it comes, which is no row.
  for (int i = 0; i < 3 || (asked() == 0 && i < 100); ++i) {
    Buffer data = pattern(20 * 1000, i);
    const IoVec piece{data.data(), data.size()};
    ASSERT_EQ(a.send({.to = &to, .segment = 1000, .pieces = {&piece, 1}}, segmentation).bytes,
              data.size());
    const auto all = receive_all(b, data.size());
    ASSERT_EQ(all.size(), 20U);
    for (size_t k = 0; k < all.size(); ++k) {
      EXPECT_TRUE(std::equal(all[k].begin(), all[k].end(),
                             data.begin() + static_cast<ptrdiff_t>(1000 * k)));
    }
  }
  EXPECT_EQ(asked(), 1);
}

TEST_P(Udp, EmptyAndLargestDatagrams) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65'480}}) {
    Buffer data = pattern(size, 1);
    const IoVec piece{data.data(), data.size()};
    const auto sent = a.send({.to = &to, .segment = 0, .pieces = {&piece, 1}}, segmentation);
    EXPECT_EQ(sent.bytes, size);
    EXPECT_EQ(sent.error, 0);
    ASSERT_TRUE(readable(b));
    Buffer place(65'536);
    const auto r = b.receive(place);
    EXPECT_FALSE(r.would_block);
    EXPECT_EQ(r.bytes, size);
    place.resize(size);
    EXPECT_TRUE(place == data);
  }
}

// In two steps: its header tells where the rest belongs.
TEST_P(Udp, ALookLeavesADatagramThereForItsPlaces) {
  const Buffer data = pattern(30'000, 5);
  const IoVec piece{const_cast<std::byte*>(data.data()), data.size()};
  Segmentation s;
  Buffer front(56);
  EXPECT_TRUE(b.look(front).value().would_block);
  ASSERT_EQ(a.send({.to = &to, .pieces = {&piece, 1}}, s).bytes, data.size());
  ASSERT_TRUE(readable(b));
  for (int i = 0; i < 2; ++i) {
    const auto r = b.look(front).value();
    EXPECT_EQ(r.bytes, data.size());
    EXPECT_EQ(r.segment, data.size());
    EXPECT_EQ(r.from.port(), a.local().port());
    EXPECT_TRUE(std::equal(front.begin(), front.end(), data.begin()));
  }
  Buffer header(48);
  Buffer first(10'000);
  Buffer second(20'000);
  const IoVec places[] = {
      {header.data(), 48}, {first.data(), first.size()}, {second.data(), second.size()}};
  EXPECT_EQ(b.receive_into(places).bytes, data.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), data.begin() + 48));
  EXPECT_TRUE(std::equal(second.begin(), second.end() - 48, data.begin() + 10'048));
  EXPECT_TRUE(b.look(front).value().would_block);
}

// DF is set: what does not fit is refused here, not cut up on the way.
TEST_P(Udp, TooLargeForThePath) {
  Buffer data = pattern(65'530, 1);
  const IoVec piece{data.data(), data.size()};
  const auto sent = a.send({.to = &to, .segment = 0, .pieces = {&piece, 1}}, segmentation);
  EXPECT_TRUE(sent.too_big);
  EXPECT_EQ(sent.bytes, 0U);
}

TEST_P(Udp, ABufferTooSmallIsTold) {
  Buffer data = pattern(2000, 1);
  const IoVec piece{data.data(), data.size()};
  ASSERT_EQ(a.send({.to = &to, .segment = 0, .pieces = {&piece, 1}}, segmentation).bytes, 2000U);
  ASSERT_TRUE(readable(b));
  Buffer place(1000);
  const auto r = b.receive(place);
  EXPECT_TRUE(r.truncated);
  EXPECT_EQ(r.bytes, 1000U);
}

// A receiver that does not come along: the kernel drops, and says how many.
TEST_P(Udp, OverrunsAreCounted) {
  UdpSocket small = make(GetParam(), 4096);
  EXPECT_GT(small.properties().receive_buffer, 0U);
  const Address there = Address::from_gid(kLoopback, small.local().port());
  Buffer data = pattern(500, 1);
  const IoVec piece{data.data(), data.size()};
  constexpr uint32_t kSent = 400;
  for (uint32_t i = 0; i < kSent; ++i) {
    ASSERT_EQ(a.send({.to = &there, .segment = 0, .pieces = {&piece, 1}}, segmentation).bytes,
              data.size());
  }
  Buffer place(65'536);
  uint32_t received = 0;
  const auto drain = [&] {
    for (auto r = small.receive(place); !r.would_block; r = small.receive(place)) {
      received += static_cast<uint32_t>(r.bytes / data.size());
    }
  };
  drain();
  // A busy kernel may be late with some of them.
  uint32_t sent = kSent;
  for (int i = 0; i < 100 && received + small.overruns() != sent; ++i) {
    ASSERT_EQ(a.send({.to = &there, .segment = 0, .pieces = {&piece, 1}}, segmentation).bytes,
              data.size());
    ++sent;
    ASSERT_TRUE(readable(small));
    drain();
  }
  EXPECT_GT(small.overruns(), 0U);
  EXPECT_EQ(received + small.overruns(), sent);
}

TEST(UdpIpv6, ATrainOverIpv6) {
  if (!have_ipv6()) GTEST_SKIP() << "no ::1 on this host";
  UdpSocket a = make(AF_INET6);
  UdpSocket b = make(AF_INET6);
  Gid one;
  one.raw[15] = 1;
  const Address to = Address::from_gid(one, b.local().port());
  Segmentation segmentation;
  Buffer data = pattern(10 * 1392, 7);
  const IoVec piece{data.data(), data.size()};
  const auto sent = a.send(
      {.to = &to, .from = one, .tos = 2, .segment = 1392, .pieces = {&piece, 1}}, segmentation);
  EXPECT_EQ(sent.bytes, data.size());
  ASSERT_TRUE(readable(b));
  Buffer place(65'536);
  const auto r = b.receive(place);
  EXPECT_EQ(r.to, one);
  EXPECT_EQ(r.from.gid(), one);
  EXPECT_EQ(r.tos, 2);
  EXPECT_EQ(r.segment, 1392U);
}

}  // namespace
}  // namespace weft::port
