// The stream of an RC connection by datagrams (spec/wdp-rd 7), between the drivers of production on
// the simulator.

#include "drive/rd_bytes.h"

#include <gtest/gtest.h>

#include "drive/stream_driver.h"
#include "tests/support/channel_node.h"
#include "tests/support/host.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::ChannelNode;
using test::kHostA;
using test::kHostB;
using test::path_to;
using test::pattern_bytes;
using work::Operation;

constexpr uint16_t kRoom = 1472;

// One end of the connection.
struct ConnectedSide final : StreamOwner, wdp::RdStreamOwner {
  ConnectedSide(sim::Scheduler& scheduler, sim::DatagramEnd& end, const port::Address& own,
                const port::Address& peer, uint8_t index, const sim::Runtime::Options& options)
      : node(scheduler, end, own, peer, false, options),
        path(path_to(peer, own)),
        offer{.qpn = make_qpn(own.port(), index), .session = 0x1000U + index, .room = kRoom} {}

  // StreamOwner
  void visited(Token&) override {}
  void driver_gone(Token&) override { driver = nullptr; }
  // wdp::RdStreamOwner, until RdBytes is
  void stream_changed() override {}

  void begin(Token& t, std::unique_ptr<RdBytes> bytes, bool initiator) {
    RdBytes& rd = *bytes;
    auto owned = std::make_unique<StreamDriver>(
        *this, std::move(bytes), host,
        rdmap::StreamConfig{.mpa = {.extension = true, .ird = 4, .ord = 4},
                            .initiator = initiator,
                            .emss = rd.segment()},
        1, t.now());
    driver = owned.get();
    node.runtime.add(t, std::move(owned), -1, false, false);
    driver->goes_by(rd);
    driver->start(t, {});
  }
  void send(Buffer& data) {
    node.runtime.run([&](Token& t) {
      host.post({.wr_id = 1, .operation = Operation::send, .signaled = true},
                {test::segment(host, data)});
      driver->posted(t);
    });
  }
  void post_receive(Buffer& place) { host.post_receive(1, {test::segment(host, place)}); }

  ChannelNode node;
  const wdp::Path path;
  const wire::RdOffer offer;
  test::Host host;
  StreamDriver* driver = nullptr;
};

class RdBytesTest : public ::testing::Test {
 protected:
  explicit RdBytesTest(const sim::Runtime::Options& options = {})
      : a(scheduler, link.a(), kHostA, kHostB, 3, options),
        b(scheduler, link.b(), kHostB, kHostA, 5, options) {}
  // As a start through a channel leaves it (spec/wdp-rd 7.5).
  void SetUp() override {
    a.node.open(a.path);
    auto stream = std::make_unique<wdp::RdStream>(a.node.all(), a, a.offer);
    stream->call(a.path);
    ASSERT_TRUE(scheduler.run_until(
        [&] { return stream->has_channel() && b.node.all().find(b.path) != nullptr; }, 1s));
    stream->begin(b.offer, a.path, RdBytes::most_between(a.offer, b.offer));
    b.node.runtime.run([&](Token& t) {
      b.begin(t,
              std::make_unique<RdBytes>(*b.node.driver, *b.node.all().find(b.path),
                                        wire::RdOffers{.own = b.offer, .peer = a.offer}),
              false);
    });
    a.node.runtime.run([&](Token& t) {
      a.begin(t, std::make_unique<RdBytes>(*a.node.driver, std::move(stream)), true);
    });
    scheduler.run_for(1ms);
    (void)b.node.runtime.take_received();
  }
  // Sends so many messages of that size from A to B. Returns the bytes on account of which B's
  // helper thread may rest.
  size_t bulk_of(size_t messages, size_t size) {
    std::vector<Buffer> sent;
    std::vector<Buffer> places(messages, Buffer(size));
    for (size_t i = 0; i < messages; ++i) sent.push_back(pattern_bytes(size, i));
    for (Buffer& place : places) b.post_receive(place);
    b.host.received.clear();
    for (Buffer& data : sent) {
      a.send(data);
      scheduler.run_for(10us);
    }
    EXPECT_TRUE(scheduler.run_until([&] { return b.host.received.size() == messages; }, 1s));
    EXPECT_EQ(places, sent);
    return b.node.runtime.take_received();
  }

  sim::Scheduler scheduler;
  sim::DatagramLink link{scheduler, 1};
  ConnectedSide a;
  ConnectedSide b;
};

// Both programs poll all the time: what can wait for their next poll does.
class PolledRdBytesTest : public RdBytesTest {
 protected:
  PolledRdBytesTest() : RdBytesTest({.gather = 1}) {}
};

// Somebody waits for those: the helper thread looks for the next at once (docs/design/19).
TEST_F(RdBytesTest, TheHelperDoesNotRestOnAccountOfSmallMessages) {
  constexpr size_t kMessages = 30;
  constexpr size_t kSize = 200;
  EXPECT_LT(bulk_of(kMessages, kSize), kMessages * kSize / 2) << "headers alone";
  constexpr size_t kLarge = 200'000;
  EXPECT_GT(bulk_of(1, kLarge), kLarge / 10 * 9);
}

// So do the deadlines of a channel, by which lost datagrams come again.
TEST_F(PolledRdBytesTest, WhatIsLostComesAgain) {
  sim::DatagramOptions lossy;
  lossy.faults.loss = 0.2;
  link.set_options(lossy);
  bulk_of(30, 200);
  const stats::EngineCounters& counters = a.node.runtime.counters();
  EXPECT_GT(counters.rd_datagrams_repeated.value(), 0U);
  EXPECT_EQ(counters.rd_datagrams_sent.value(),
            a.node.all().find(a.path)->sender().counters().sent);
}

}  // namespace
}  // namespace weft::drive
