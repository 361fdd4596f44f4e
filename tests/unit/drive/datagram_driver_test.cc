// UC connections over real UDP sockets of the loopback interface. The engine's helper thread may
// move them, so everything that the test looks at is looked at while it holds the engine.

#include "drive/datagram_driver.h"

#include <gtest/gtest.h>

#include <deque>
#include <new>

#include "drive/uc_link.h"
#include "engine/engine.h"
#include "port/udp_socket.h"
#include "tests/support/uc_host.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using engine::Engine;
using engine::Hold;
using test::Buffer;
using test::pattern_bytes;
using wdp::UcConnection;
using work::Operation;

const Gid kHere = Gid::from_ipv4(INADDR_LOOPBACK);

std::unique_ptr<port::UdpSocket> bound() {
  port::Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const auto at = port::Address::from_gid(kHere, 0);
  EXPECT_EQ(::bind(fd.get(), at.get(), at.length), 0);
  return std::make_unique<port::UdpSocket>(std::move(fd), DatagramDriver::kBuffer);
}

struct Owner final : UcLinkOwner {
  void visited(Token&, UcLink&) override { ++visits; }
  void link_lost(Token&, UcLink&) override { lost = true; }
  int visits = 0;
  bool lost = false;
};

// Accepts whoever calls.
struct Listener final : DatagramOwner {
  std::optional<wire::RejReason> requested(Token&, DatagramDriver&, const wdp::RequestKey& key,
                                           const wdp::Handshake&) override {
    calls.push_back(key);
    return {};
  }
  std::vector<wdp::RequestKey> calls;
};

// One side of a connection.
struct Side {
  test::UcHost host;
  Owner owner;
  UcLink* link = nullptr;
};

class DatagramDriverTest : public ::testing::Test {
 protected:
  DatagramDriverTest() {
    auto e = Engine::create(0);
    EXPECT_TRUE(e.ok());
    if (e.ok()) engine = std::move(*e);
    Hold h = engine->hold();
    active = &DatagramDriver::start(h.token(), nobody, bound());
    passive = &DatagramDriver::start(h.token(), listener, bound());
  }
  ~DatagramDriverTest() override { engine.reset(); }

  // Lives as long as the engine: its helper thread visits links while the test ends.
  Side& side() { return sides.emplace_back(); }

  template <class F>
  bool until(F&& done) {
    for (const Time end = Engine::clock() + 20s; Engine::clock() < end;) {
      engine->progress();
      const Hold h = engine->hold();
      if (done()) return true;
    }
    return false;
  }
  wdp::Offer offer(uint32_t number, const DatagramDriver& driver) const {
    return {.own_qpn = make_qpn(port::Address::of_socket(driver.properties().fd).port(),
                                static_cast<uint8_t>(number)),
            .first_psn = Psn{number * 1000},
            .ird = 4,
            .ord = 4,
            .max_payload = max_payload,
            .features = {.data_crc = crc, .immediate = true, .uc_read = true}};
  }
  // Number `n` of the active side calls the listener.
  void connect(Side& a, Side& b, uint32_t n) {
    {
      Hold h = engine->hold();
      Token& t = h.token();
      a.link = &UcLink::start(t, *active, a.owner, a.host);
      const wdp::Path path{
          .to = {.address = kHere,
                 .port = port::Address::of_socket(passive->properties().fd).port()},
          .from = kHere};
      active->wdp_socket().connect(a.link->connection(), offer(n, *active), path, Qpn{}, false,
                                   t.now());
      a.link->settle(t);
    }
    ASSERT_TRUE(until([&] { return !listener.calls.empty(); }));
    {
      Hold h = engine->hold();
      Token& t = h.token();
      b.link = &UcLink::start(t, *passive, b.owner, b.host);
      ASSERT_TRUE(passive->wdp_socket().accept(listener.calls.back(), b.link->connection(),
                                               offer(n, *passive), t.now()));
      b.link->settle(t);
      listener.calls.clear();
    }
    ASSERT_TRUE(until([&] { return a.host.host.ready && b.host.host.ready; }));
  }
  void send(Side& from, Side& to, Buffer& data, Buffer& place, uint64_t wr_id) {
    Hold h = engine->hold();
    to.host.host.post_receive(wr_id, {test::segment(to.host.host, place)});
    from.host.host.post({.wr_id = wr_id, .operation = Operation::send, .signaled = true},
                        {test::segment(from.host.host, data)});
    from.link->settle(h.token());
  }

  // Sends 1 MB in datagrams of 64 KB; returns how much of it went straight to its place.
  uint64_t in_place_of_large_datagrams(uint32_t number) {
    max_payload = 65'504;
    Side& a = side();
    Side& b = side();
    connect(a, b, number);
    const uint64_t before = engine->counters().bytes_received_in_place.value();
    Buffer there = pattern_bytes(1 << 20, number);
    Buffer place(there.size());
    send(a, b, there, place, 1);
    EXPECT_TRUE(
        until([&] { return b.host.host.received.size() == 1 && a.host.host.sent.size() == 1; }));
    EXPECT_EQ(place, there);
    const Hold h = engine->hold();
    return engine->counters().bytes_received_in_place.value() - before;
  }

  uint16_t max_payload = 1472;
  bool crc = false;
  std::deque<Side> sides;
  std::unique_ptr<Engine> engine;
  DatagramOwner nobody;
  Listener listener;
  DatagramDriver* active = nullptr;
  DatagramDriver* passive = nullptr;
};

TEST_F(DatagramDriverTest, MessagesBothWays) {
  Side& a = side();
  Side& b = side();
  connect(a, b, 1);
  for (const size_t n : {size_t{1}, size_t{1424}, size_t{100'000}}) {
    Buffer there = pattern_bytes(n, n);
    Buffer place(n);
    send(a, b, there, place, 1);
    ASSERT_TRUE(until([&] { return b.host.host.received.size() == 1; }));
    EXPECT_EQ(place, there);
    Buffer back = pattern_bytes(n, n + 1);
    Buffer other(n);
    send(b, a, back, other, 2);
    ASSERT_TRUE(until([&] { return a.host.host.received.size() == 1; }));
    EXPECT_EQ(other, back);
    ASSERT_TRUE(until([&] { return a.host.host.sent.size() == 1; }));
    for (Side* s : {&a, &b}) {
      s->host.host.received.clear();
      s->host.host.sent.clear();
    }
  }
}

// The first one shows that they are large.
TEST_F(DatagramDriverTest, LargeDatagramsGoStraightToTheirPlaces) {
  EXPECT_EQ(in_place_of_large_datagrams(1), (1 << 20) - 65'456);
}

// The first of a Send opens it, and goes another way; so do small ones. Neither keeps the next from
// being looked at.
TEST_F(DatagramDriverTest, LargeDatagramsGoStraightToTheirPlacesWhateverIsBetween) {
  max_payload = 65'504;
  Side& a = side();
  Side& b = side();
  connect(a, b, 1);
  uint64_t expected = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    Buffer there = pattern_bytes(i % 3 == 2 ? 100 : 1 << 20, i);
    Buffer place(there.size());
    if (there.size() > 100) expected += there.size() - 65'456;
    send(a, b, there, place, 1);
    ASSERT_TRUE(until([&] { return b.host.host.received.size() == i + 1; }));
    EXPECT_EQ(place, there);
  }
  const Hold h = engine->hold();
  EXPECT_EQ(engine->counters().bytes_received_in_place.value(), expected);
}

TEST_F(DatagramDriverTest, SoDoWritesWithImmediate) {
  max_payload = 65'504;
  Side& a = side();
  Side& b = side();
  connect(a, b, 1);
  Buffer target(1 << 20);
  const Stag stag = b.host.host.add_region(target);
  for (uint32_t i = 0; i < 3; ++i) {
    Buffer there = pattern_bytes(target.size(), i);
    {
      Hold h = engine->hold();
      b.host.host.post_receive(i, {});
      a.host.host.post({.operation = Operation::write_immediate,
                        .signaled = true,
                        .remote_stag = stag,
                        .remote_to = test::address_of(target),
                        .immediate = i},
                       {test::segment(a.host.host, there)});
      a.link->settle(h.token());
    }
    ASSERT_TRUE(until([&] { return b.host.host.received.size() == i + 1; }));
    EXPECT_EQ(target, there);
  }
  const Hold h = engine->hold();
  // The first datagram shows that they are large.
  EXPECT_EQ(engine->counters().bytes_received_in_place.value(), 3 * target.size() - 65'456);
}

// spec/threats 2: what lies in one piece is checked before it is placed.
TEST_F(DatagramDriverTest, LargeDatagramsWithACrcAreCheckedFirst) {
  crc = true;
  EXPECT_EQ(in_place_of_large_datagrams(1), 0);
}

// spec/wdp 5.2: DREQ; what stays of the link ends by itself.
TEST_F(DatagramDriverTest, WhoLeavesTellsThePeer) {
  Side& a = side();
  Side& b = side();
  connect(a, b, 1);
  {
    Hold h = engine->hold();
    a.link->leave(h.token());
  }
  ASSERT_TRUE(until([&] { return b.host.host.end.has_value(); }));
  EXPECT_EQ(b.host.host.end->kind, work::StreamEnd::Kind::peer_closed);
  EXPECT_FALSE(a.host.host.end.has_value());
}

// One connection cannot go on for want of memory; its neighbour on the same socket does.
TEST_F(DatagramDriverTest, WantOfMemoryEndsOneConnection) {
  Side& a = side();
  Side& b = side();
  Side& c = side();
  Side& d = side();
  connect(a, b, 1);
  connect(c, d, 2);
  b.host.on_receive = [](const auto&, auto, const auto&) { throw std::bad_alloc{}; };
  Buffer data = pattern_bytes(500, 3);
  Buffer place(500);
  send(a, b, data, place, 1);
  ASSERT_TRUE(until([&] { return b.owner.lost; }));
  Buffer other(500);
  send(c, d, data, other, 2);
  ASSERT_TRUE(until([&] { return d.host.host.received.size() == 1; }));
  EXPECT_EQ(other, data);
  EXPECT_FALSE(d.owner.lost);
  EXPECT_FALSE(c.owner.lost);
  EXPECT_GE(engine->counters().out_of_memory.value(), 1U);
}

// Nobody listens: REJ 1.
TEST_F(DatagramDriverTest, WhoeverIsNotListenedToIsRefused) {
  Side& a = side();
  Hold h = engine->hold();
  a.link = &UcLink::start(h.token(), *passive, a.owner, a.host);
  const wdp::Path path{
      .to = {.address = kHere, .port = port::Address::of_socket(active->properties().fd).port()},
      .from = kHere};
  passive->wdp_socket().connect(a.link->connection(), offer(1, *passive), path, Qpn{}, false,
                                h.token().now());
  a.link->settle(h.token());
  { const Hold let_go = std::move(h); }
  ASSERT_TRUE(until([&] { return a.link->connection().state() == UcConnection::State::failed; }));
  const auto& handshake = *a.link->connection().handshake();
  EXPECT_EQ(handshake.failure(), wdp::Handshake::Failure::rejected);
  EXPECT_EQ(handshake.peer().reason, static_cast<uint32_t>(wire::RejReason::no_listener));
}

// It has come, but nobody would look for it before the next one: a keepalive after 10 s.
TEST_F(DatagramDriverTest, WhatAFaultHoldsBackComesByItself) {
  const FaultSpec late = *FaultSpec::parse("delay:1ms,way:in");
  {
    Hold h = engine->hold();
    auto socket = bound();
    socket->inject(late);
    passive = &DatagramDriver::start(h.token(), listener, std::move(socket));
  }
  Side& a = side();
  Side& b = side();
  connect(a, b, 1);
  Buffer there = pattern_bytes(1000, 1);
  Buffer place(there.size());
  uint64_t before = 0;
  {
    Hold h = engine->hold();
    before = engine->counters().datagrams_received.value();
    b.host.host.post_receive(1, {test::segment(b.host.host, place)});
    a.host.host.post({.wr_id = 1, .operation = Operation::send},
                     {test::segment(a.host.host, there)});
    a.link->settle(h.token());
    // As a program does that polls this connection alone.
    EXPECT_FALSE(passive->try_receive(h.token()));
  }
  ASSERT_TRUE(until([&] { return b.host.host.received.size() == 1; }));
  EXPECT_EQ(place, there);
  const Hold h = engine->hold();
  EXPECT_GE(engine->counters().datagrams_received.value(), before + 1);
}

// What is no WDP, of a version that is not ours, or for nobody, is counted and nothing else.
TEST_F(DatagramDriverTest, StrangersAreCounted) {
  const auto stranger = bound();
  const auto to = port::Address::of_socket(passive->properties().fd);
  port::Segmentation segmentation;
  Buffer data = pattern_bytes(100, 9);
  data[0] = std::byte{0x77};
  const IoVec piece{data.data(), data.size()};
  ASSERT_EQ(stranger->send({.to = &to, .segment = 100, .pieces = {&piece, 1}}, segmentation).bytes,
            100U);
  const auto& dropped = engine->counters().datagram_dropped;
  ASSERT_TRUE(
      until([&] { return dropped[static_cast<size_t>(wire::WdpDrop::not_wdp)].value() == 1; }));
  EXPECT_EQ(engine->counters().datagrams_received.value(), 1U);
}

}  // namespace
}  // namespace weft::drive
