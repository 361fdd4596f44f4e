// Real datagrams over the loopback interface, and what the capture has of them.
#include "port/udp_tap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "port/capture.h"
#include "tests/support/hex.h"
#include "tests/unit/port/capture_fixture.h"

namespace weft::port {
namespace {

using test::Buffer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Gid kLoopback = Gid::from_ipv4(INADDR_LOOPBACK);
constexpr Gid kOther = Gid::from_ipv4(INADDR_LOOPBACK + 1);

UdpSocket make(int family = AF_INET) {
  Fd fd{::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const Address any = Address::any(family, 0);
  EXPECT_EQ(::bind(fd.get(), any.get(), any.length), 0);
  return UdpSocket{std::move(fd), 1 << 20};
}

// One packet of IPv4 and UDP, taken apart.
struct Seen {
  Gid from;
  Gid to;
  uint16_t from_port;
  uint16_t to_port;
  uint8_t tos;
  Buffer payload;
};
Seen look(const Buffer& packet) {
  EXPECT_EQ(packet[0], std::byte{0x45});
  EXPECT_EQ(packet[9], std::byte{17});
  EXPECT_EQ(load_be<uint16_t>(packet.data() + 2), packet.size());
  EXPECT_EQ(load_be<uint16_t>(packet.data() + 24), packet.size() - 20);
  return {.from = Gid::from_ipv4(load_be<uint32_t>(packet.data() + 12)),
          .to = Gid::from_ipv4(load_be<uint32_t>(packet.data() + 16)),
          .from_port = load_be<uint16_t>(packet.data() + 20),
          .to_port = load_be<uint16_t>(packet.data() + 22),
          .tos = std::to_integer<uint8_t>(packet[1]),
          .payload = {packet.begin() + 28, packet.end()}};
}

class UdpTapTest : public CaptureFixture {
 protected:
  size_t send(UdpSocket& from, const Buffer& data, size_t segment, const Gid& source = {},
              uint8_t tos = 0) {
    const IoVec pieces[] = {
        {const_cast<std::byte*>(data.data()), data.size() / 3},
        {const_cast<std::byte*>(data.data()) + data.size() / 3, data.size() - data.size() / 3}};
    return from
        .send({.to = &to_, .from = source, .tos = tos, .segment = segment, .pieces = pieces},
              segmentation_)
        .bytes;
  }
  size_t receive(size_t bytes) {
    Buffer place(65'536);
    size_t have = 0;
    while (have < bytes) {
      pollfd p{.fd = b_.fd(), .events = POLLIN, .revents = 0};
      if (::poll(&p, 1, 200) != 1) break;
      have += b_.receive(place).bytes;
    }
    return have;
  }

  Capture capture_{{.pattern = path("t.pcapng")}};
  UdpSocket a_ = make();
  UdpSocket b_ = make();
  Address to_ = Address::from_gid(kLoopback, b_.local().port());
  Segmentation segmentation_;
};

TEST_F(UdpTapTest, ATrainThatIsSentIsItsDatagrams) {
  a_.record(capture_);
  const Buffer data = test::pattern(2500, 1);
  ASSERT_EQ(send(a_, data, 1000, kOther, 0x2e << 2 | 1), data.size());
  const File file = read("t.pcapng");
  ASSERT_EQ(file.packets.size(), 3U);
  Buffer all;
  for (const Buffer& packet : file.packets) {
    const Seen seen = look(packet);
    EXPECT_EQ(seen.from, kOther);
    EXPECT_EQ(seen.to, kLoopback);
    EXPECT_EQ(seen.from_port, a_.local().port());
    EXPECT_EQ(seen.to_port, b_.local().port());
    EXPECT_EQ(seen.tos, 0x2e << 2 | 1);
    all.insert(all.end(), seen.payload.begin(), seen.payload.end());
  }
  EXPECT_TRUE(all == data);
  EXPECT_EQ(file.packets[2].size(), 28 + 500U);
}

// Where the kernel chooses the source, it is the one that the route has.
TEST_F(UdpTapTest, TheSourceIsFoundOut) {
  a_.record(capture_);
  ASSERT_EQ(send(a_, test::pattern(10, 1), 0), 10U);
  EXPECT_EQ(look(read("t.pcapng").packets.at(0)).from, kLoopback);
}

TEST_F(UdpTapTest, WhatComesIsThereOnceForEachDatagram) {
  b_.record(capture_);
  const Buffer data = test::pattern(2500, 1);
  ASSERT_EQ(send(a_, data, 1000, {}, 0x10), data.size());
  ASSERT_EQ(receive(data.size()), data.size());
  const File file = read("t.pcapng");
  ASSERT_EQ(file.packets.size(), 3U);
  Buffer all;
  for (const Buffer& packet : file.packets) {
    const Seen seen = look(packet);
    EXPECT_EQ(seen.from, kLoopback);
    EXPECT_EQ(seen.from_port, a_.local().port());
    EXPECT_EQ(seen.to_port, b_.local().port());
    EXPECT_EQ(seen.tos, 0x10);
    all.insert(all.end(), seen.payload.begin(), seen.payload.end());
  }
  EXPECT_TRUE(all == data);
}

TEST_F(UdpTapTest, WithBothEndsInOneProcessEachDatagramIsThereOnce) {
  a_.record(capture_);
  b_.record(capture_);
  ASSERT_EQ(send(a_, test::pattern(300, 1), 100), 300U);
  ASSERT_EQ(receive(300), 300U);
  EXPECT_EQ(read("t.pcapng").packets.size(), 3U);
}

TEST_F(UdpTapTest, EmptyDatagramsAreThereAndEmptyReceivesAreNot) {
  a_.record(capture_);
  b_.record(capture_);
  EXPECT_EQ(receive(1), 0U);
  EXPECT_THAT(files(), IsEmpty());
  (void)send(a_, {}, 0);
  ASSERT_EQ(read("t.pcapng").packets.size(), 1U);
  EXPECT_EQ(read("t.pcapng").packets[0].size(), 28U);
}

TEST_F(UdpTapTest, WhatIsNotSentIsNotThere) {
  a_.record(capture_);
  EXPECT_EQ(send(a_, test::pattern(65'530, 1), 0), 0U);  // larger than any datagram
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(UdpTapTest, TheSnapLengthIsForEachDatagram) {
  Capture cutting{{.pattern = path("cut.pcapng"), .keep = 64}};
  a_.record(cutting);
  ASSERT_EQ(send(a_, test::pattern(250, 1), 100), 250U);
  const File file = read("cut.pcapng");
  EXPECT_THAT(file.sizes, ElementsAre(128, 128, 78));
  EXPECT_EQ(file.packets.at(0).size(), 28 + 64U);
  EXPECT_EQ(file.packets.at(2).size(), 28 + 50U);
}

// Faults on purpose stand for the network: what they lose was sent, and has not come.
TEST_F(UdpTapTest, WhatIsLostOnPurposeWasSentAndHasNotCome) {
  Capture theirs{{.pattern = path("theirs.pcapng")}};
  a_.record(capture_);
  b_.record(theirs);
  a_.inject({.loss = 0.3, .direction = FaultDirection::out, .seed = 5});
  b_.inject({.loss = 0.3, .direction = FaultDirection::in, .seed = 6});
  size_t came = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(send(a_, test::pattern(1000, 1), 100), 1000U);
    Buffer place(65'536);
    for (auto r = b_.receive(place); !r.would_block; r = b_.receive(place)) came += r.bytes / 100;
  }
  EXPECT_EQ(read("t.pcapng").packets.size(), 200U);
  EXPECT_EQ(read("theirs.pcapng").packets.size(), came);
  EXPECT_LT(came, 150U);
  EXPECT_GT(came, 50U);
}

TEST_F(UdpTapTest, TheOptionOfTheProcessIsEnough) {
  set_trace_for_death_test("own-%p.pcapng");
  EXPECT_EXIT(
      {
        UdpSocket own = make();
        std::exit(send(own, test::pattern(10, 1), 0) == 10 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(UdpTapTest, OverIpv6) {
  Gid one;
  one.raw[15] = 1;
  if (const Fd fd{::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)}; !fd.valid()) {
    GTEST_SKIP() << "no IPv6 on this host";
  } else if (const Address at = Address::from_gid(one, 0);
             ::bind(fd.get(), at.get(), at.length) != 0) {
    GTEST_SKIP() << "no ::1 on this host";
  }
  a_ = make(AF_INET6);
  a_.record(capture_);
  to_ = Address::from_gid(one, 4791);
  ASSERT_EQ(send(a_, test::pattern(20, 1), 0, {}, 0xb9), 20U);
  const Buffer packet = read("t.pcapng").packets.at(0);
  ASSERT_EQ(packet.size(), 68U);
  EXPECT_EQ(load_be<uint16_t>(packet.data()), 0x6b90) << "version and traffic class";
  EXPECT_EQ(std::memcmp(packet.data() + 8, one.raw.data(), 16), 0) << "the source of the route";
  EXPECT_EQ(std::memcmp(packet.data() + 24, one.raw.data(), 16), 0);
  // A dual-stack socket sends IPv4 as IPv4.
  to_ = Address::from_gid(kLoopback, 4791);
  if (send(a_, test::pattern(20, 1), 0) == 20) {
    EXPECT_EQ(look(read("t.pcapng").packets.at(1)).from, kLoopback);
  }
}

}  // namespace
}  // namespace weft::port
