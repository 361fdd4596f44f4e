#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "bench/clock.h"
#include "bench/internet.h"
#include "stream/inlet.h"

namespace weft::stream {
namespace {

constexpr Shape kShape{.format = Format::raw, .payload = 24};

struct UdpBench {
  explicit UdpBench(uint32_t streams)
      : ring({.name = {},
              .shape = kShape,
              .streams = streams,
              .blocks = 4,
              .packets_per_block = 8,
              .slot_bytes = 48}) {
    for (uint32_t i = 0; i < streams; ++i) lanes.emplace_back(ring.stream(i), LedgerRules{});
    inlet = make_socket_inlet(
        {.transport = Transport::udp, .shape = kShape, .address = "127.0.0.1"}, lanes);
    Guest guest;
    for (uint32_t i = 0; i < streams; ++i) guest.streams.push_back(i);
    for (const auto& end : inlet->offer(guest)) ports.push_back(end.at("port"));
  }
  void send(uint32_t stream, uint64_t number) {
    std::array<std::byte, 32> packet{};
    write_header(kShape, stream, number, packet);
    const sockaddr_in to = bench::address_of("127.0.0.1", ports[stream]);
    ASSERT_EQ(::sendto(out.get(), packet.data(), packet.size(), 0, bench::generic(to), sizeof to),
              static_cast<ssize_t>(packet.size()));
  }
  // One sleep and one look.
  void take() {
    inlet->wait(10'000);
    (void)inlet->take(bench::now_ns());
  }

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
  for (const Lane& lane : b.lanes) {
    EXPECT_EQ(lane.ledger.counts().received, Continuity::kWitnesses);
  }
}

}  // namespace
}  // namespace weft::stream
