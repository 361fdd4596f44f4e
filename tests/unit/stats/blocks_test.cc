#include "stats/blocks.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace weft::stats {
namespace {

TEST(Cell, Counts) {
  Cell c;
  EXPECT_EQ(c.value(), 0U);
  c.add();
  c.add(41);
  c.add_shared(UINT64_MAX - 42);
  EXPECT_EQ(c.value(), UINT64_MAX);
}

TEST(Cell, SeveralThreadsShareIt) {
  Cell c;
  std::thread other([&] {
    for (int i = 0; i < 10'000; ++i) c.add_shared();
  });
  for (int i = 0; i < 10'000; ++i) c.add_shared(2);
  other.join();
  EXPECT_EQ(c.value(), 30'000U);
}

// A reason that comes from somewhere else than this enumeration counts nowhere.
TEST(Blocks, ReasonsBeyondTheFamilyAreIgnored) {
  std::array<Cell, 3> family;
  count(family, 2);
  count(family, 3);
  count(family, -1);
  EXPECT_EQ(family[0].value() + family[1].value(), 0U);
  EXPECT_EQ(family[2].value(), 1U);
}

TEST(Blocks, WhatAQueuePairCountedStaysWithItsEngine) {
  auto engine = std::make_unique<EngineBlock>();
  auto qp = std::make_unique<QpBlock>();
  for (uint64_t life = 1; life <= 2; ++life) {
    qp->qpn = 0x8c0101;
    qp->peer.set({.address = Gid::from_ipv4(0x7f000001), .port = 1});
    qp->terminate({.received = true, .error = wire::term::kMpaCrc});
    qp->counters.sent(Kind::write);
    qp->counters.sent(Kind::write, 1000 * life);
    qp->counters.completion_errors.add(life);
    retire(*qp, *engine);
    EXPECT_EQ(qp->qpn, 0U);
    EXPECT_EQ(qp->last_terminate, 0U);
    EXPECT_FALSE(qp->peer.value());
    EXPECT_EQ(qp->counters.bytes_sent[1].value(), 0U);
    EXPECT_EQ(engine->sequence, 2 * life) << "even: nothing is on its way";
  }
  EXPECT_EQ(engine->gone.counters.messages_sent[1].value(), 2U);
  EXPECT_EQ(engine->gone.counters.bytes_sent[1].value(), 3000U);
  EXPECT_EQ(engine->gone.counters.completion_errors.value(), 3U);
}

TEST(PeerCell, HoldsOneOrNone) {
  PeerCell cell;
  EXPECT_FALSE(cell.value());
  for (const uint16_t port : {uint16_t{1}, uint16_t{65535}}) {
    const Gid address = Gid::from_ipv4(0xc0000200 + port % 7);
    cell.set({.address = address, .port = port});
    ASSERT_TRUE(cell.value());
    EXPECT_EQ(cell.value()->address, address);
    EXPECT_EQ(cell.value()->port, port);
    EXPECT_EQ(cell.value()->carrier, Carrier::usual);
    for (const Carrier carrier : {Carrier::memory, Carrier::datagrams, Carrier::memory}) {
      cell.set_carrier(carrier);
      ASSERT_TRUE(cell.value());
      EXPECT_EQ(cell.value()->carrier, carrier);
      EXPECT_EQ(cell.value()->address, address);
      EXPECT_EQ(cell.value()->port, port);
    }
  }
  cell.clear();
  EXPECT_FALSE(cell.value());
  cell.set_carrier(Carrier::memory);
  EXPECT_FALSE(cell.value()) << "of nobody";
}

// All bytes of an address are the same here, and the port is that byte.
TEST(PeerCell, IsNeverSeenInParts) {
  PeerCell cell;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int i = 0; i < 50'000; ++i) {
      Gid address;
      address.raw.fill(static_cast<uint8_t>(1 + i % 250));
      cell.set({.address = address, .port = address.raw[0]});
    }
    over = true;
  });
  int seen = 0;
  int in_parts = 0;
  do {
    const auto peer = cell.value();
    if (!peer) continue;
    ++seen;
    Gid whole;
    whole.raw.fill(static_cast<uint8_t>(peer->port));
    if (peer->address != whole) ++in_parts;
  } while (!over || seen == 0);
  writer.join();
  EXPECT_EQ(in_parts, 0);
}

TEST(LastTerminate, PacksAndUnpacks) {
  for (const bool received : {false, true}) {
    for (size_t i = 0; i < wire::kTermErrorCount; ++i) {
      const wire::TermError e = wire::term_error(i).error;
      const uint32_t bits = LastTerminate{received, e}.pack();
      EXPECT_NE(bits, 0U);
      const LastTerminate back = LastTerminate::unpack(bits);
      EXPECT_EQ(back.received, received);
      EXPECT_EQ(back.error, e);
    }
  }
}

}  // namespace
}  // namespace weft::stats
