#include "stream/intake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "stream/ledger.h"

namespace weft::stream {
namespace {

constexpr uint32_t kPackets = 8;  // of a block
constexpr uint32_t kBlocks = 8;
constexpr uint64_t kRing = uint64_t{kPackets} * kBlocks;

struct Bench {
  explicit Bench(const Shape& its_shape = {.format = Format::raw, .payload = 24})
      : shape(its_shape),
        ring({.name = {},
              .shape = shape,
              .streams = 1,
              .blocks = kBlocks,
              .packets_per_block = kPackets,
              .slot_bytes = (shape.packet_bytes() + 15) / 16 * 16}),
        lane(ring.stream(0), LedgerRules{}) {
    lane.store.attach();
  }
  std::vector<std::byte> packet(uint64_t number) const {
    std::vector<std::byte> p(shape.packet_bytes());
    write_header(shape, 0, number, p);
    for (size_t i = shape.header_bytes(); i < p.size(); ++i) {
      p[i] = static_cast<std::byte>(number * 31 + i);
    }
    return p;
  }
  void offer(ConstPacket p) {
    EXPECT_TRUE(intake.take(p, ++now));
    lane.ledger.settle();
  }
  void offer(uint64_t number) { offer(packet(number)); }
  // All published packets, each in its place with its own bytes, in the order of their blocks.
  std::vector<uint64_t> take() {
    std::vector<uint64_t> numbers;
    while (const weft_stream_block* b = lane.store.unreleased()) {
      for (uint32_t i = 0; i < b->packets; ++i) {
        if ((b->valid[i / 8] >> (i % 8) & 1) == 0) continue;
        const uint64_t number = b->number * b->packets + i;
        const std::byte* at = lane.store.data_of(b) + size_t{i} * b->slot_bytes;
        auto expected = packet(number);
        // A stream may be another board's.
        if (shape.format == Format::rsp) expected[1] = at[1];
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), at)) << number;
        numbers.push_back(number);
      }
      lane.store.release();
    }
    return numbers;
  }
  void end() {
    intake.settle(++now);
    lane.ledger.finish(std::nullopt);
    lane.continuity.end();
    lane.ended_ns = now - 1'000'000'000;
  }
  const Counts& counts() const { return lane.ledger.counts(); }

  std::vector<uint64_t> shown;
  Shape shape;
  Ring ring;
  Lane lane;
  std::vector<nlohmann::json> events;
  InletOptions options{.transport = Transport::udp,
                       .shape = shape,
                       .address = {},
                       .circuits = {},
                       .library = {},
                       .tell = [this](const nlohmann::json& e) { events.push_back(e); }};
  Intake intake{options, 0, lane, false};
  int64_t now = 1'000'000'000;
};

std::vector<uint64_t> range(uint64_t from, uint64_t to) {
  std::vector<uint64_t> numbers;
  for (uint64_t n = from; n < to; ++n) numbers.push_back(n);
  return numbers;
}
std::vector<uint64_t> operator+(std::vector<uint64_t> a, const std::vector<uint64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Intake, OneStrangerBeforeTheFirstPacketsChangesNothing) {
  Bench b;
  b.offer(uint64_t{1} << 50);
  for (uint64_t n = 16; n < 56; ++n) b.offer(n);
  b.end();
  EXPECT_EQ(b.take(), range(16, 56));
  EXPECT_EQ(b.counts().invalid, 1U);
  EXPECT_EQ(b.counts().missing, 0U);
  EXPECT_TRUE(b.events.empty());
}

TEST(Intake, TheFirstPacketsMayOvertakeEachOther) {
  Bench b;
  b.offer(21);
  for (uint64_t n = 17; n < 21; ++n) b.offer(n);
  b.offer(16);
  for (uint64_t n = 22; n < 40; ++n) b.offer(n);
  b.end();
  EXPECT_EQ(b.take(), range(16, 40));
  EXPECT_EQ(b.counts().out_of_order, 5U);
  EXPECT_EQ(b.counts().late, 0U);
}

TEST(Intake, ACountThatFallsBackIsTakenUpWithoutLoss) {
  Bench b;
  std::vector<uint64_t> shown;
  for (uint64_t n = 100'000; n < 100'024; ++n) b.offer(n);
  for (uint64_t n = 0; n < 48; ++n) {
    b.offer(n);
    shown = shown + b.take();
  }
  b.end();
  shown = shown + b.take();
  EXPECT_EQ(shown, range(100'000, 100'024) + range(0, 48));
  EXPECT_EQ(b.counts().sessions, 2U);
  EXPECT_EQ(b.counts().missing + b.counts().gap + b.counts().late, 0U);
  ASSERT_EQ(b.events.size(), 1U);
  EXPECT_EQ(b.events[0],
            (nlohmann::json{{"event", "jump"}, {"stream", 0}, {"from", 100'024}, {"to", 0}}));
}

TEST(Intake, AnOutageLongerThanTheRingIsMissingAndItsEndIsTaken) {
  Bench b;
  for (uint64_t n = 0; n < 16; ++n) b.offer(n);
  for (uint64_t n = 16 + 10 * kRing; n < 24 + 10 * kRing; ++n) b.offer(n);
  b.end();
  EXPECT_EQ(b.take(), range(0, 16) + range(16 + 10 * kRing, 24 + 10 * kRing));
  EXPECT_EQ(b.counts().missing, 10 * kRing);
  EXPECT_EQ(b.counts().invalid, 0U);
  EXPECT_EQ(b.counts().sessions, 1U);
}

TEST(Intake, BoardsWithoutTimeAreInvalid) {
  Bench b{Shape{.beamlets = 2, .slices = 16, .bits = 8}};
  const uint64_t first = 19'531'250'000'000;
  for (uint64_t n = first; n < first + 20; ++n) {
    b.offer(n);
    auto p = b.packet(n);
    for (size_t i = 8; i < 12; ++i) p[i] = std::byte{0xff};
    b.offer(p);
    p = b.packet(n);
    p[14] = std::byte{3};  // slice 196608 and more of a second that has 195313
    b.offer(p);
  }
  b.end();
  EXPECT_EQ(b.take(), range(first, first + 20));
  EXPECT_EQ(b.counts().invalid, 40U);
  ASSERT_TRUE(b.lane.first_invalid);
  EXPECT_EQ(b.lane.first_invalid->reason.substr(0, 17), "second 4294967295");
  EXPECT_EQ(b.lane.first_invalid->header.substr(0, 11), "03 80 01 00");
  EXPECT_EQ(b.lane.first_invalid->fields.at("second"), 0xffffffff);
  EXPECT_EQ(b.lane.first_invalid->fields.at("beamlets"), 2);
}

TEST(Intake, SamplesThatTheirBoardCallsBadAreNotShown) {
  Bench b{Shape{.beamlets = 2, .slices = 16, .bits = 8}};
  for (uint64_t n = 0; n < 40; ++n) {
    auto p = b.packet(n);
    if (n % 5 == 2) p[1] |= std::byte{0x40};
    b.offer(p);
  }
  b.end();
  EXPECT_EQ(b.take().size(), 32U);
  EXPECT_EQ(b.counts().flagged, 8U);
  EXPECT_EQ(b.counts().missing, 0U);
}

TEST(Intake, AnotherStationOrClockIsToldOnceAndCounted) {
  Bench b{Shape{.beamlets = 2, .slices = 16, .bits = 8}};
  for (uint64_t n = 0; n < 40; ++n) {
    b.offer(n);
    auto p = b.packet(n + 1);
    if (n % 2 == 0) {
      p[4] = std::byte{99};  // station
    } else {
      p[1] &= std::byte{0x7f};  // 160 MHz
    }
    if (n >= 8) b.offer(p);
  }
  b.end();
  EXPECT_EQ(b.take(), range(0, 40));
  EXPECT_EQ(b.counts().foreign, 32U);
  ASSERT_EQ(b.events.size(), 1U);
  EXPECT_EQ(b.events[0].at("event"), "foreign");
  EXPECT_EQ(b.events[0].at("from").at("station"), 99);
  EXPECT_EQ(b.events[0].at("stream_is"),
            (nlohmann::json{{"station", 1}, {"board", 0}, {"clock", 200}}));
}

// Before anything of the stream is there, it is told what was asked for, and nothing made up.
TEST(Intake, AStrangerBeforeTheStreamIsToldWithoutAnOrigin) {
  Bench rsp{Shape{.beamlets = 2, .slices = 16, .bits = 8, .clock = 160}};
  auto p = rsp.packet(7);
  p[1] |= std::byte{0x80};  // 200 MHz
  rsp.offer(p);
  ASSERT_EQ(rsp.events.size(), 1U);
  EXPECT_EQ(rsp.events[0].at("stream_is"), (nlohmann::json{{"clock", 160}}));

  Bench raw;
  raw.intake.refuse_foreign({.verdict = Verdict::good, .number = 7, .origin = {}, .stream = 9});
  ASSERT_EQ(raw.events.size(), 1U);
  EXPECT_EQ(raw.events[0].at("from"), (nlohmann::json{{"stream", 9}}));
  EXPECT_FALSE(raw.events[0].contains("stream_is"));
}

// A counter of 16 bits comes round in the middle of a stream: it goes on.
TEST(Intake, ACounterOfFewBitsComesRound) {
  Bench b{{.format = Format::raw, .payload = 24, .number = place_of(Format::raw, "0:2")}};
  for (uint64_t n = 65'500; n < 65'580; ++n) {
    b.offer(n);
    if (n == 65'550) b.offer(65'530);  // overtaken across the turn, and there already
    if (n % 8 == 7) b.shown = b.shown + b.take();
  }
  b.end();
  EXPECT_EQ(b.shown + b.take(), range(65'500, 65'580));
  EXPECT_EQ(b.counts().sessions, 1U);
  EXPECT_EQ(b.counts().duplicate, 1U);
  EXPECT_EQ(b.counts().missing + b.counts().invalid, 0U);
  EXPECT_TRUE(b.events.empty());
}

// As MeerKAT's F-engines count: samples, in 48 bits.
TEST(Intake, TimestampsOfHeapsComeRound) {
  const uint64_t turn = uint64_t{1} << (48 - 12);
  Bench b{{.format = Format::spead,
           .payload = 24,
           .number = place_of(Format::spead, "0x1600:4096"),
           .items = 7}};
  for (uint64_t n = turn - 40; n < turn + 40; ++n) {
    b.offer(n);
    if (n % 8 == 7) b.shown = b.shown + b.take();
  }
  b.end();
  EXPECT_EQ(b.shown + b.take(), range(turn - 40, turn + 40));
  EXPECT_EQ(b.counts().sessions, 1U);
  EXPECT_EQ(b.counts().missing + b.counts().invalid, 0U);
  EXPECT_TRUE(b.events.empty());
}

// So it does where the network was away meanwhile: what lies between is a gap, and no number falls.
TEST(Intake, ACounterThatComesRoundInASilenceGoesOn) {
  Bench b{{.format = Format::raw, .payload = 24, .number = place_of(Format::raw, "0:2")}};
  for (uint64_t n = 65'500; n < 65'528; ++n) b.offer(n);
  b.end();
  b.shown = b.take();
  for (uint64_t n = 65'544; n < 65'580; ++n) b.offer(n);
  b.end();
  EXPECT_EQ(b.shown + b.take(), range(65'500, 65'528) + range(65'544, 65'580));
  EXPECT_EQ(b.counts().sessions, 2U);
  EXPECT_EQ(b.counts().gap, 65'544U - 65'528);
  EXPECT_EQ(b.counts().missing + b.counts().late, 0U);
  EXPECT_TRUE(b.events.empty());
}

TEST(Intake, WhatComesRoundBehindAnEndIsNotLate) {
  Bench b{{.format = Format::raw, .payload = 24, .number = place_of(Format::raw, "0:2")}};
  for (uint64_t n = 65'500; n < 65'536; ++n) b.offer(n);
  b.end();
  b.lane.ended_ns = b.now;
  b.offer(65'530);
  EXPECT_EQ(b.counts().late, 1U);
  for (uint64_t n = 65'536; n < 65'560; ++n) b.offer(n);
  b.end();
  EXPECT_EQ(b.take(), range(65'500, 65'560));
  EXPECT_EQ(b.counts().late, 1U);
}

// A board that was started again in a silence: consumers see smaller numbers, and are told.
TEST(Intake, ACountThatFallsInASilenceIsToldOf) {
  for (const char* const place : {"0:2", "0:8"}) {
    Bench b{{.format = Format::raw, .payload = 24, .number = place_of(Format::raw, place)}};
    for (uint64_t n = 20'000; n < 20'024; ++n) b.offer(n);
    b.end();
    for (uint64_t n = 0; n < 24; ++n) b.offer(n);
    b.end();
    EXPECT_EQ(b.take(), range(20'000, 20'024) + range(0, 24));
    EXPECT_EQ(b.counts().gap, 0U);
    ASSERT_EQ(b.events.size(), 1U);
    EXPECT_EQ(b.events[0],
              (nlohmann::json{{"event", "jump"}, {"stream", 0}, {"from", 20'024}, {"to", 0}}));
  }
}

std::vector<std::byte> little_packet(const Bench& b, uint64_t number) {
  std::vector<std::byte> p = b.packet(number);
  std::reverse(p.begin(), p.begin() + 8);
  return p;
}

// As VTP counts. Nobody has told the order of bytes, and a second sender has the other one.
TEST(Intake, ACounterShowsTheOrderOfItsBytes) {
  Bench b;
  // Its low byte is the high one of the other order, and comes round: a ring's numbers look like
  // any.
  for (uint64_t n = 1000; n < 1048; ++n) b.offer(little_packet(b, n));
  b.end();
  EXPECT_EQ(b.counts().received, 48U);
  EXPECT_EQ(b.counts().missing + b.counts().invalid, 0U);
  EXPECT_EQ(b.lane.store.unreleased()->number, 1000 / kPackets);
  ASSERT_EQ(b.events.size(), 1U);
  EXPECT_EQ(b.events[0],
            (nlohmann::json{{"event", "learned"}, {"stream", 0}, {"number", "0:8:le"}}));
  while (b.lane.store.unreleased() != nullptr) b.lane.store.release();
  for (uint64_t n = 2000; n < 2024; ++n) b.offer(n);
  b.end();
  EXPECT_EQ(b.take(), range(2000, 2024));
  EXPECT_EQ(b.counts().invalid, 0U);
  EXPECT_EQ(b.events.size(), 1U);
}

// Packets that show nothing do not decide for those behind them.
TEST(Intake, RubbishBeforeACounterShowsNothing) {
  Bench b;
  for (uint64_t n = 0; n < kPacketsToLearn; ++n) {
    b.offer(b.packet((n * 0x9e37'79b9'7f4a'7c15) >> 3));
  }
  for (uint64_t n = 1000; n < 1048; ++n) b.offer(little_packet(b, n));
  b.end();
  EXPECT_EQ(b.counts().received, 48U);
  EXPECT_EQ(b.counts().invalid, kPacketsToLearn);
}

// What comes right behind a sender's end is read as that sender's.
TEST(Intake, StragglersOfACounterAreLate) {
  Bench b;
  for (uint64_t n = 1000; n < 1040; ++n) {
    if (n != 1020) b.offer(little_packet(b, n));
  }
  b.end();
  b.lane.ended_ns = b.now;
  b.offer(little_packet(b, 1020));
  EXPECT_FALSE(b.lane.undecided);
  EXPECT_EQ(b.counts().late, 1U);
  EXPECT_EQ(b.counts().sessions, 1U);
}

// A sender that says hello says the order, too; packets that wait were somebody else's.
TEST(Intake, ASenderThatSaysHelloIsReadAsItSays) {
  Bench b;
  for (uint64_t n = 500; n < 503; ++n) b.offer(n);
  Shape little = b.shape;
  little.number = place_of(Format::raw, "0:8:le");
  b.lane.session = 1;
  b.lane.ledger.begin(16, std::nullopt);
  b.intake.begin(little);
  for (uint64_t n = 16; n < 24; ++n) b.offer(little_packet(b, n));
  EXPECT_EQ(b.counts().received, 8U);
  EXPECT_EQ(b.counts().invalid, 3U);
}

// Fewer than it takes to be sure.
TEST(Intake, AFewPacketsAreReadWhenNothingMoreComes) {
  Bench b;
  for (uint64_t n = 16; n < 19; ++n) b.offer(n);
  EXPECT_TRUE(b.lane.undecided);
  b.end();
  EXPECT_FALSE(b.lane.undecided);
  EXPECT_EQ(b.take(), range(16, 19));
}

// Whatever comes, each packet is in one account, and a stream that is good again is taken again
// within a ring.
class RandomPackets : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomPackets, AreEachInOneAccount) {
  std::mt19937_64 random{GetParam()};
  const auto below = [&](uint64_t n) { return random() % n; };
  Bench b{Shape{.beamlets = 1, .slices = 16, .bits = 8}};
  uint64_t offered = 0;
  uint64_t next = below(uint64_t{1} << 40);
  std::vector<uint64_t> shown;
  const auto offer = [&](const std::vector<std::byte>& p) {
    ++offered;
    b.offer(p);
    if (below(3) == 0) (void)b.take();
  };
  for (unsigned step = 0; step < 300; ++step) {
    switch (below(9)) {
      case 0:  // any bytes
        for (uint64_t i = below(4); i > 0; --i) {
          std::vector<std::byte> p(b.shape.packet_bytes() + below(2));
          for (std::byte& byte : p) byte = static_cast<std::byte>(random());
          offer(p);
        }
        break;
      case 1:  // a number from nowhere, or some
        for (uint64_t i = below(4); i > 0; --i) offer(b.packet(below(uint64_t{1} << 45)));
        break;
      case 2:  // set anew
        next = below(uint64_t{1} << 40);
        break;
      case 3:  // a hole
        next += below(4 * kRing);
        break;
      case 4: {  // late ones, doubles
        const uint64_t back = std::min(next, below(3 * kRing));
        offer(b.packet(next - back));
        break;
      }
      case 5: {  // bad samples, another board
        auto p = b.packet(next++);
        constexpr std::array kFields{0x01, 0x02, 0x04, 0x08, 0x10, 0x40, 0x80};
        p[1] ^= static_cast<std::byte>(kFields[below(kFields.size())]);
        offer(p);
        break;
      }
      case 6:
        if (below(4) == 0) b.end();
        break;
      default:
        for (uint64_t i = below(3 * kRing); i > 0; --i) offer(b.packet(next++));
        break;
    }
  }
  // The stream is good again.
  for (uint64_t i = 0; i < kRing; ++i) offer(b.packet(next++));
  (void)b.take();
  const uint64_t before = b.counts().received;
  for (uint64_t i = 0; i < kRing; ++i) {
    offer(b.packet(next++));
    (void)b.take();
  }
  EXPECT_EQ(b.counts().received, before + kRing);
  b.end();
  const Counts& c = b.counts();
  EXPECT_EQ(c.received + c.late + c.duplicate + c.overrun + c.invalid + c.flagged + c.foreign,
            offered);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPackets, ::testing::Range(1U, 41U));

}  // namespace
}  // namespace weft::stream
