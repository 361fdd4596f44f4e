#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "kit/clock.h"
#include "kit/internet.h"
#include "stream/inlet.h"

namespace weft::stream {
namespace {

constexpr Shape kShape{.format = Format::raw, .payload = 24};

// Packets say which stream they are of, in their second word.
constexpr Shape kNamed{.format = Format::raw,
                       .payload = 16,
                       .number = {.at = 0, .bytes = 8},
                       .stream_number = {.at = 8, .bytes = 8}};

struct UdpBench {
  explicit UdpBench(uint32_t streams, const Shape& its_shape = kShape)
      : shape(its_shape),
        ring({.name = {},
              .shape = shape,
              .streams = streams,
              .blocks = 4,
              .packets_per_block = 8,
              .slot_bytes = 48}) {
    for (uint32_t i = 0; i < streams; ++i) lanes.emplace_back(ring.stream(i), LedgerRules{});
    inlet = make_socket_inlet({.transport = Transport::udp, .shape = shape, .address = "127.0.0.1"},
                              lanes);
    ConnectedSender sender;
    for (uint32_t i = 0; i < streams; ++i) sender.streams.push_back(i);
    for (const auto& end : inlet->offer(sender)) ports.push_back(end.at("port"));
  }
  void send(uint32_t stream, uint64_t number) {
    std::array<std::byte, 32> packet{};
    write_header(shape, stream, number, packet);
    const sockaddr_in to = kit::address_of("127.0.0.1", ports[stream]);
    ASSERT_EQ(::sendto(out.get(), packet.data(), packet.size(), 0, kit::generic(to), sizeof to),
              static_cast<ssize_t>(packet.size()));
  }
  // One sleep and one look.
  void take() {
    inlet->wait(10'000);
    (void)inlet->take(kit::now_ns());
  }

  const Shape shape;
  Ring ring;
  Lanes lanes;
  std::unique_ptr<Inlet> inlet;
  std::vector<uint16_t> ports;
  port::Fd out{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST(UdpInlet, OneLookTakesFromAllSocketsThatAreReady) {
  UdpBench b{3};
  for (uint64_t n = 0; n < Continuity::kWitnesses; ++n) {
    for (uint32_t i = 0; i < 3; ++i) b.send(i, 16 + i + n);
  }
  b.take();
  for (Lane& lane : b.lanes) {
    lane.ledger.finish(std::nullopt);
    EXPECT_EQ(lane.ledger.counts().received, Continuity::kWitnesses);
  }
}

TEST(UdpInlet, OnePortServesStreamsThatPacketsName) {
  UdpBench b{3, kNamed};
  EXPECT_EQ(b.ports, (std::vector<uint16_t>(3, b.ports[0])));
  for (uint64_t n = 0; n < Continuity::kWitnesses; ++n) {
    for (uint32_t i = 0; i < 3; ++i) b.send(i, 16 + n);
  }
  b.ports.resize(8, b.ports[0]);
  b.send(7, 16);  // of a stream that nobody takes
  b.take();
  for (const Lane& lane : b.lanes) {
    EXPECT_EQ(lane.ledger.counts().received, Continuity::kWitnesses);
  }
  EXPECT_EQ(b.lanes[0].ledger.counts().foreign, 1U);
}

}  // namespace
}  // namespace weft::stream
