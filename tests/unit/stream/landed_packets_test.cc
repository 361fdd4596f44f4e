#include "stream/landed_packets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/crc32c.h"
#include "stream/ring.h"

namespace weft::stream {
namespace {

constexpr uint32_t kPackets = 8;  // of a block
constexpr uint32_t kBlocks = 8;
constexpr uint32_t kSlot = 48;

// Packets are put to where a Write would bring them.
class LandedPacketsTest : public testing::Test {
 protected:
  explicit LandedPacketsTest(std::vector<std::string> circuits = {},
                             const Shape& its_shape = {.format = Format::raw, .payload = 24})
      : shape(its_shape),
        options{.transport = Transport::uc,
                .shape = shape,
                .address = {},
                .circuits = circuits,
                .library = {}},
        ring({.name = {},
              .shape = shape,
              .streams = 1,
              .blocks = kBlocks,
              .packets_per_block = kPackets,
              .slot_bytes = std::max(kSlot, (shape.packet_bytes() + 15) / 16 * 16)}),
        packets(options, lanes, ring) {
    lanes.emplace_back(ring.stream(0), LedgerRules{});
    lane().store.attach();
  }
  Lane& lane() { return lanes.front(); }
  const Counts& counts() { return lane().ledger.counts(); }
  void put(uint64_t number, bool trailer = false) {
    std::byte* const slot = lane().store.place(number);
    std::fill_n(slot, kSlot, std::byte{0xa5});
    write_header(shape, 0, number, Packet{slot, shape.packet_bytes()});
    if (!trailer) return;
    write_trailer(slot + kSlot - sizeof(Trailer),
                  {.number = number, .crc = crc32c({slot, shape.packet_bytes()}), .zero = 0});
  }
  bool told(uint64_t first, uint32_t count, uint32_t group, uint32_t bytes) {
    const Mark mark =
        mark_of(immediate_of({.number = static_cast<uint32_t>(first), .packets = count}));
    return packets.account_for(0, group, mark, bytes, ++now);
  }
  bool told(uint64_t number) { return told(number, 1, 1, shape.packet_bytes()); }

  const Shape shape;
  InletOptions options;
  Ring ring;
  Lanes lanes;
  LandedPackets packets;
  int64_t now = 0;
};

TEST_F(LandedPacketsTest, AWriteIsThePacketsThatItsMarkTells) {
  packets.begin(0, shape, false);
  lane().ledger.begin(0, std::nullopt);
  for (uint64_t i = 0; i < 4; ++i) put(i);
  EXPECT_TRUE(told(0));
  EXPECT_TRUE(told(1, 3, 4, 3 * kSlot));
  EXPECT_EQ(lane().ledger.next(), 4U);
}

TEST_F(LandedPacketsTest, WhatNoSenderMakesIsRefused) {
  packets.begin(0, shape, false);
  lane().ledger.begin(0, std::nullopt);
  EXPECT_FALSE(told(0, 1, 1, shape.packet_bytes() - 1)) << "bytes";
  ASSERT_TRUE(lane().first_invalid);
  EXPECT_EQ(lane().first_invalid->reason, "a Write of 31 bytes and 1 packets, not of 32 bytes");
  EXPECT_FALSE(told(0, 3, 2, 3 * kSlot)) << "more packets than the sender's Writes have";
  EXPECT_FALSE(told(kPackets - 1, 2, 4, 2 * kSlot)) << "over the end of a block";
  EXPECT_EQ(lane().ledger.next(), 0U);
}

// A mark has 24 bits of the number. A sender that has gone on by more while it was silent is found
// by the header.
TEST_F(LandedPacketsTest, AfterASilenceTheHeaderTellsTheRest) {
  packets.begin(0, shape, false);
  lane().ledger.begin(0, std::nullopt);
  put(0);
  EXPECT_TRUE(told(0));
  const uint64_t later = (uint64_t{1} << kMarkBits) + 8;
  now += 2'000'000'000;
  put(later);
  EXPECT_TRUE(told(later));
  EXPECT_EQ(lane().ledger.next(), later + 1);
}

TEST_F(LandedPacketsTest, APacketOfWhichNothingToldIsFoundByItsTrailer) {
  packets.begin(0, shape, true);
  ASSERT_TRUE(lane().ledger.recover);
  put(3, true);
  EXPECT_TRUE(lane().ledger.recover(3));
  *(lane().store.place(3) + shape.header_bytes()) ^= std::byte{1};
  EXPECT_FALSE(lane().ledger.recover(3)) << "damaged";
  put(4, true);
  EXPECT_FALSE(lane().ledger.recover(4 + uint64_t{kBlocks} * kPackets)) << "another packet's place";
  packets.begin(0, shape, false);
  EXPECT_FALSE(lane().ledger.recover) << "the next sender has none";
}

class CircuitPacketsTest : public LandedPacketsTest {
 protected:
  CircuitPacketsTest() : LandedPacketsTest({"192.0.2.1"}) { packets.begin(0, shape, false); }
};

// A circuit says nothing beforehand.
TEST_F(CircuitPacketsTest, ACircuitBeginsWhereItsHeadersSay) {
  const uint64_t first = (uint64_t{5} << kMarkBits) + 16;
  for (uint64_t i = 0; i < 4; ++i) {
    put(first + i);
    EXPECT_TRUE(told(first + i)) << i;
  }
  packets.settle(0, now);
  ASSERT_TRUE(lane().ledger.running());
  EXPECT_EQ(lane().ledger.next(), first + 4);
}

TEST_F(CircuitPacketsTest, AMarkThatTheHeaderDeniesIsNoPacket) {
  put(16);
  EXPECT_FALSE(told(16 + uint64_t{kBlocks} * kPackets)) << "the same slot, another number";
  EXPECT_FALSE(lane().ledger.running());
  ASSERT_TRUE(lane().first_invalid);
  EXPECT_EQ(lane().first_invalid->reason, "its header has the number 0x10, and its immediate 0x50");
  EXPECT_EQ(lane().first_invalid->fields, (nlohmann::json{{"number", 16}}));
  EXPECT_EQ(lane().first_invalid->header.substr(0, 23), "00 00 00 00 00 00 00 10");
}

// Its headers have fewer bits than its marks.
class CircuitOfFewBitsTest : public LandedPacketsTest {
 protected:
  CircuitOfFewBitsTest()
      : LandedPacketsTest(
            {"192.0.2.1"},
            {.format = Format::raw, .payload = 24, .number = place_of(Format::raw, "0:2")}) {
    packets.begin(0, shape, false);
    options.tell = [this](const nlohmann::json& event) { events.push_back(event); };
  }
  void come(uint64_t from, uint64_t to) {
    for (uint64_t n = from; n < to; ++n) {
      put(n);
      EXPECT_TRUE(told(n)) << n;
      lane().ledger.settle();
    }
    packets.settle(0, now);
  }
  std::vector<nlohmann::json> events;
};

TEST_F(CircuitOfFewBitsTest, BeginsAndComesRoundAlsoInASilence) {
  const uint64_t turn = uint64_t{1} << 16;
  come(3 * turn - 40, 3 * turn + 8);
  ASSERT_TRUE(lane().ledger.running());
  EXPECT_EQ(lane().ledger.next(), 3 * turn + 8);
  lane().ledger.finish(std::nullopt);
  lane().continuity.end();
  const uint64_t mark_turn = uint64_t{1} << kMarkBits;
  come(mark_turn - 24, mark_turn - 8);
  EXPECT_EQ(lane().ledger.next(), mark_turn - 8);
  lane().ledger.finish(std::nullopt);
  lane().continuity.end();
  come(mark_turn + 16, mark_turn + 32);
  EXPECT_EQ(lane().ledger.next(), mark_turn + 32);
  EXPECT_EQ(counts().gap, mark_turn - 24 - (3 * turn + 8) + 24);
  EXPECT_EQ(counts().late + counts().missing + counts().invalid, 0U);
  EXPECT_TRUE(events.empty());
}

// A circuit whose board was built for other samples.
class CircuitOfOtherSamplesTest : public LandedPacketsTest {
 protected:
  CircuitOfOtherSamplesTest() : LandedPacketsTest({"192.0.2.1"}, {}) {
    packets.begin(0, shape, false);
  }
};

TEST_F(CircuitOfOtherSamplesTest, IsToldWhyNothingIsTaken) {
  Shape sent = shape;
  sent.bits = 8;
  sent.beamlets *= 2;
  write_header(sent, 0, 4'000'016, Packet{lane().store.place(4'000'016), shape.packet_bytes()});
  EXPECT_FALSE(told(4'000'016));
  ASSERT_TRUE(lane().first_invalid);
  EXPECT_EQ(lane().first_invalid->reason,
            explain(shape, {lane().store.place(4'000'016), shape.packet_bytes()}));
  EXPECT_NE(lane().first_invalid->reason, "");
}

}  // namespace
}  // namespace weft::stream
