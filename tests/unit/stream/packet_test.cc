#include "stream/packet.h"

#include <gtest/gtest.h>

#include <vector>

#include "kit/failure.h"

namespace weft::stream {
namespace {

std::vector<uint8_t> header(const Shape& shape, uint32_t stream, uint64_t number) {
  std::vector<std::byte> packet(shape.packet_bytes());
  write_header(shape, stream, number, packet);
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < shape.header_bytes(); ++i) {
    bytes.push_back(static_cast<uint8_t>(packet[i]));
  }
  return bytes;
}

std::vector<std::byte> packet_with(const Shape& shape, const std::vector<uint8_t>& bytes) {
  std::vector<std::byte> packet(shape.packet_bytes());
  for (size_t i = 0; i < bytes.size(); ++i) packet[i] = static_cast<std::byte>(bytes[i]);
  return packet;
}

TEST(RspPacket, HasTheSizeOfAStationsPackets) {
  EXPECT_EQ(Shape{}.packet_bytes(), 7824U);
  EXPECT_EQ((Shape{.beamlets = 122, .bits = 8}.packet_bytes()), 7824U);
  EXPECT_NEAR(Shape{}.packets_per_second() * 7824 * 8, 764.06e6, 0.01e6);
}

// 1600000000 s are 312500000000000 slices of 1024 samples at 200 MHz; one slice later stands in the
// middle of packet 19531250000000.
TEST(RspPacket, OnAWholeSecond) {
  const std::vector<uint8_t> expected{3,    0x82, 0,    0,    2, 0, 61, 16,  // station 2, board 2
                                      0x00, 0x10, 0x5e, 0x5f, 0, 0, 0,  0};
  EXPECT_EQ(header(Shape{}, 6, 19'531'250'000'000), expected);
}

// An odd second begins in the middle of a slice: its first slice is the next one, 0.5 later.
// Packet 12208 holds slices 195328 to 195343; second 1 begins with slice 195313.
TEST(RspPacket, InAnOddSecond) {
  const std::vector<uint8_t> expected{3, 0x80, 0, 0, 1, 0, 61, 16, 1, 0, 0, 0, 15, 0, 0, 0};
  EXPECT_EQ(header(Shape{}, 0, 12'208), expected);
}

TEST(RspPacket, OfEightBits) {
  EXPECT_EQ(header(Shape{.beamlets = 122, .bits = 8}, 0, 0),
            (std::vector<uint8_t>{3, 0x80, 1, 0, 1, 0, 122, 16, 0, 0, 0, 0, 0, 0, 0, 0}));
}

// A board of 4 bits sends 244 beamlets, in as many bytes as 122 of 8 bits.
TEST(RspPacket, OfFourBits) {
  const Shape shape{.beamlets = 244, .bits = 4};
  EXPECT_NO_THROW(shape.check());
  EXPECT_EQ(shape.packet_bytes(), 7824U);
  EXPECT_EQ(header(shape, 0, 0),
            (std::vector<uint8_t>{3, 0x80, 2, 0, 1, 0, 244, 16, 0, 0, 0, 0, 0, 0, 0, 0}));
  // Its bit mode is not that of 8 bits.
  EXPECT_EQ(explain({.beamlets = 244, .bits = 8},
                    packet_with({.beamlets = 244, .bits = 8}, header(shape, 0, 0))),
            "4 bits, not 8 (--bits)");
}

// Version 2 came before the bit modes: its byte 2 says nothing. Versions 3 and 4 have them.
TEST(RspPacket, OfEachVersion) {
  for (const uint8_t version : {1, 2, 3, 4, 5}) {
    for (const uint32_t bits : {4U, 8U, 16U}) {
      const Shape shape{.bits = bits};
      auto bytes = header(shape, 0, 77);
      bytes[0] = version;
      const bool taken = version == 2 ? bits == 16 : version == 3 || version == 4;
      EXPECT_EQ(number_of(shape, packet_with(shape, bytes)).has_value(), taken)
          << unsigned{version} << " " << bits;
    }
  }
  auto bytes = header(Shape{}, 0, 77);
  bytes[0] = 2;
  bytes[2] = 0x57;  // its configuration
  EXPECT_EQ(number_of(Shape{}, packet_with(Shape{}, bytes)), 77U);
}

TEST(RspPacket, TimeGoesOnWithoutHolesAndTwins) {
  const Shape shape;
  std::vector<std::byte> packet(shape.packet_bytes());
  // Across some seconds' ends, even and odd ones.
  for (uint64_t n = 19'531'250'000'000 - 5; n < 19'531'250'000'000 + 40'000; ++n) {
    write_header(shape, 1, n, packet);
    ASSERT_EQ(number_of(shape, packet), n);
  }
}

TEST(RspPacket, OfAnotherKindIsNone) {
  const Shape shape;
  std::vector<std::byte> packet(shape.packet_bytes());
  write_header(shape, 1, 77, packet);
  ASSERT_EQ(number_of(shape, packet), 77U);
  for (const size_t field : {0U, 2U, 6U, 7U}) {
    std::vector<std::byte> other = packet;
    other[field] ^= field == 0 ? std::byte{6} : std::byte{1};  // version 5
    EXPECT_EQ(number_of(shape, other), std::nullopt) << field;
  }
  EXPECT_EQ(number_of(shape, ConstPacket{packet}.first(packet.size() - 1)), std::nullopt);
  packet.push_back(std::byte{});
  EXPECT_EQ(number_of(shape, packet), std::nullopt);
}

// A second of the 160 MHz clock has 156250 slices, each as long as 1024 samples.
TEST(RspPacket, OfTheSlowerClock) {
  const Shape shape{.clock = 160};
  EXPECT_NEAR(shape.packets_per_second(), 156'250.0 / 16, 1e-9);
  std::vector<std::byte> packet(shape.packet_bytes());
  write_header(shape, 1, 9'765, packet);  // slices 156240 to 156255
  EXPECT_EQ(header(shape, 1, 9'766),      // slice 156256 is number 6 of second 1
            (std::vector<uint8_t>{3, 0x01, 0, 0, 1, 0, 61, 16, 1, 0, 0, 0, 6, 0, 0, 0}));
  for (uint64_t n = 16'000'000'000'000 - 5; n < 16'000'000'000'000 + 40'000; ++n) {
    write_header(shape, 1, n, packet);
    const Header read = read_header(Shape{}, packet);
    ASSERT_TRUE(read.is(n)) << n;
    ASSERT_EQ(read.origin.clock, 160U);
  }
}

TEST(RspPacket, TellsWhoSentItAndWhetherItsSamplesAreValid) {
  const Shape shape;
  std::vector<std::byte> packet(shape.packet_bytes());
  write_header(shape, 6, 77, packet);
  Header read = read_header(shape, packet);
  EXPECT_EQ(read.verdict, Verdict::good);
  EXPECT_EQ(read.origin, (Origin{.station = 2, .unit = 2, .clock = 200}));
  packet[1] |= std::byte{0x40};
  read = read_header(shape, packet);
  EXPECT_EQ(read.verdict, Verdict::flagged);
  EXPECT_TRUE(read.is(77));
}

// An even second has slices 0 to 195312, an odd one 0 to 195311.
TEST(RspPacket, MoreSlicesThanASecondHasAreNoTime) {
  const Shape shape;
  for (const uint32_t second : {1'600'000'000U, 1'600'000'001U}) {
    const uint32_t most = second % 2 == 0 ? 195'313 : 195'312;
    for (const uint32_t slice : {most - 1, most, 0xffffffffU}) {
      std::vector<uint8_t> bytes{3, 0x80, 0, 0, 1, 0, 61, 16};
      for (const uint32_t word : {second, slice}) {
        for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(word >> (8 * i)));
      }
      EXPECT_EQ(read_header(shape, packet_with(shape, bytes)).verdict,
                slice < most ? Verdict::good : Verdict::no_time)
          << second << " " << slice;
    }
  }
}

TEST(RspPacket, SaysWhatItHasInsteadOfWhatWasAskedFor) {
  const Shape shape;
  const auto said = [&](std::vector<uint8_t> bytes) {
    bytes.resize(16);
    return explain(shape, packet_with(shape, bytes));
  };
  EXPECT_EQ(said({1}), "version 1, not 2 to 4");
  EXPECT_EQ(said({3, 0x80, 1}), "8 bits, not 16 (--bits)");
  EXPECT_EQ(said({3, 0x80, 0, 0, 1, 0, 122}), "122 beamlets, not 61 (--beamlets)");
  EXPECT_EQ(said({3, 0x80, 0, 0, 1, 0, 61, 8}), "8 slices, not 16 (--slices)");
  EXPECT_EQ(explain(shape, std::vector<std::byte>(100)), "100 bytes, not 7824");
}

// An item with an immediate value, and one whose value lies in the heap.
struct Item {
  uint64_t name = 0;
  uint64_t value = 0;
  bool immediate = true;
};
// A packet with these items, and so much payload.
std::vector<std::byte> spead(const std::vector<Item>& items, size_t payload,
                             unsigned address_bits = 48) {
  std::vector<std::byte> packet;
  const auto put = [&](uint64_t value) {
    for (unsigned i = 0; i < 8; ++i)
      packet.push_back(static_cast<std::byte>(value >> (56 - 8 * i)));
  };
  put(uint64_t{0x5304} << 48 | uint64_t{8 - address_bits / 8} << 40 |
      uint64_t{address_bits / 8} << 32 | items.size());
  for (const Item& i : items) put(uint64_t{i.immediate} << 63 | i.name << address_bits | i.value);
  for (size_t i = 0; i < payload; ++i) packet.push_back(static_cast<std::byte>(i * 11 + 3));
  return packet;
}

constexpr Shape kHeaps{.format = Format::spead, .payload = 1024, .heap_packets = 4, .items = 7};

// The bytes of the SPEAD document: magic 'S', version 4, item identifiers of 2 bytes and addresses
// of 6, the number of items; then counter, size, offset and length as immediate values; and null
// items, which say nothing.
TEST(SpeadPacket, Bytes) {
  const std::vector<uint8_t> expected{
      0x53, 4,    2, 6, 0, 0, 0,    7,     //
      0x80, 0x01, 0, 0, 0, 0, 0x01, 0x02,  // heap 258
      0x80, 0x02, 0, 0, 0, 0, 0x10, 0x00,  // of 4096 bytes
      0x80, 0x03, 0, 0, 0, 0, 0x0c, 0x00,  // from 3072 on
      0x80, 0x04, 0, 0, 0, 0, 0x04, 0x00,  // 1024 bytes
      0x10, 0x00, 0, 0, 0, 0, 0,    0,     // the data, at 0 of the heap
      0x80, 0x00, 0, 0, 0, 0, 0,    0,    0x80, 0x00, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(header(kHeaps, 9, 258 * 4 + 3), expected);
  EXPECT_EQ(number_of(kHeaps, packet_with(kHeaps, expected)), 258U * 4 + 3);
}

TEST(SpeadPacket, OfSpead6440) {
  Shape shape = kHeaps;
  shape.address_bits = 40;
  const auto packet = spead({{2, 4096}, {1, 5}, {0x1600, 77}, {3, 2048}, {4, 1024}}, 1024, 40);
  EXPECT_EQ(number_of(shape, packet), 22U);
  EXPECT_EQ(read_header(kHeaps, packet).verdict, Verdict::wrong_kind);
  EXPECT_EQ(explain(kHeaps, packet), "it does not begin as SPEAD-64-48 does (--address-bits)");
  EXPECT_EQ(header(shape, 0, 22)[3], 5);
}

// MeerKAT's digitisers count samples, its F-engines name themselves: any items, in any order.
TEST(SpeadPacket, HasItsNumberAndItsStreamInItemsThatWereTold) {
  Shape shape = kHeaps;
  shape.number = place_of(Format::spead, "0x1600:4096");
  shape.stream_number = place_of(Format::spead, "0x4101");
  const auto packet = spead({{0x4300, 0, false},
                             {0x4103, 12},
                             {4, 1024},
                             {0x4101, 33},
                             {3, 1024},
                             {0x1600, 9 * 4096 + 17},
                             {1, 4'000'000}},
                            1024);
  const Header read = read_header(shape, packet);
  EXPECT_TRUE(read.is(9 * 4 + 1));
  EXPECT_EQ(read.stream, 33U);
  auto later = packet;
  advance(shape, 400, later);
  EXPECT_EQ(later, spead({{0x4300, 0, false},
                          {0x4103, 12},
                          {4, 1024},
                          {0x4101, 33},
                          {3, 1024},
                          {0x1600, 109 * 4096 + 17},
                          {1, 4'000'100}},
                         1024));
  // What this side writes itself is found again.
  EXPECT_TRUE(read_header(shape, packet_with(shape, header(shape, 33, 77))).is(77));
  EXPECT_EQ(read_header(shape, packet_with(shape, header(shape, 33, 77))).stream, 33U);
  // An item whose value lies in the heap has none here.
  const auto without = spead({{1, 5}, {0x1600, 8, false}, {0x4101, 1}, {3, 0}, {4, 1024}}, 1024);
  EXPECT_EQ(read_header(shape, without).verdict, Verdict::wrong_shape);
  EXPECT_EQ(explain(shape, without), "no item 0x1600 with a value (--number)");
}

// In its place each has as many items, with null items behind its own, and the payload where the
// payload of all is.
// 40 bits of samples in steps of 4096 are 2^28 heaps of 4 packets. Other steps lose more than bits.
TEST(SpeadPacket, SaysHowManyBitsItsNumberHas) {
  Shape shape = kHeaps;
  shape.address_bits = 40;
  shape.number = place_of(Format::spead, "0x1600:4096");
  std::vector<std::byte> packet(shape.packet_bytes());
  const uint64_t turn = uint64_t{1} << 30;
  write_header(shape, 0, turn + 6, packet);
  const Header header = read_header(shape, packet);
  EXPECT_EQ(header.number, 6U);
  EXPECT_EQ(header.bits, 30U);
  EXPECT_TRUE(header.is(turn + 6));
  EXPECT_FALSE(header.is(turn + 7));
  shape.number.step = 1000;
  EXPECT_EQ(read_header(shape, packet).bits, 64U);
  shape.number.step = 4096;
  shape.heap_packets = 3;
  EXPECT_EQ(read_header(shape, packet).bits, 64U);
}

TEST(SpeadPacket, WithFewerItemsIsMadeUp) {
  const std::vector<Item> items{{1, 5}, {3, 1024}, {4, 1024}, {2, 4096}};
  const auto packet = spead(items, 1024);
  ASSERT_EQ(number_of(kHeaps, packet), 21U);
  std::vector<std::byte> kept(kHeaps.packet_bytes(), std::byte{0x77});
  copy_packet(kHeaps, packet, kept.data());
  auto more = items;
  more.resize(7);
  EXPECT_EQ(kept, spead(more, 1024));
  EXPECT_EQ(number_of(kHeaps, kept), 21U);
}

// 1024 x 3 + 100 bytes are three whole packets and a rest.
TEST(SpeadPacket, AtTheEndOfItsHeapMayBeShorter) {
  const auto packet = spead({{1, 5}, {2, 3172}, {3, 3072}, {4, 100}}, 100);
  ASSERT_EQ(number_of(kHeaps, packet), 23U);
  std::vector<std::byte> kept(kHeaps.packet_bytes(), std::byte{0x77});
  copy_packet(kHeaps, packet, kept.data());
  EXPECT_EQ(number_of(kHeaps, kept), 23U);
  for (size_t i = 0; i < 1024; ++i) {
    ASSERT_EQ(kept[kHeaps.header_bytes() + i],
              i < 100 ? packet[packet.size() - 100 + i] : std::byte{});
  }
  // In the middle of a heap it is not.
  EXPECT_FALSE(number_of(kHeaps, spead({{1, 5}, {2, 4096}, {3, 1024}, {4, 100}}, 100)));
  EXPECT_FALSE(number_of(kHeaps, spead({{1, 5}, {3, 3072}, {4, 100}}, 100)));
}

TEST(SpeadPacket, OfStreamControlAndDescriptorsIsNoData) {
  EXPECT_EQ(read_header(kHeaps, spead({{1, 1}, {2, 0}, {3, 0}, {4, 0}, {6, 2}}, 0)).verdict,
            Verdict::control);
  EXPECT_EQ(
      read_header(kHeaps, spead({{1, 1}, {2, 300}, {3, 0}, {4, 300}, {5, 0, false}}, 300)).verdict,
      Verdict::control);
}

TEST(SpeadPacket, OfAnotherKindIsNone) {
  const std::vector<Item> good{{1, 5}, {2, 4096}, {3, 1024}, {4, 1024}};
  ASSERT_TRUE(number_of(kHeaps, spead(good, 1024)));
  for (const size_t at : {0U, 1U, 2U, 3U}) {
    auto bad = spead(good, 1024);
    bad[at] ^= std::byte{1};
    EXPECT_EQ(read_header(kHeaps, bad).verdict, Verdict::wrong_kind) << at;
  }
  struct Case {
    std::vector<Item> items;
    size_t payload;
    std::string why;
  };
  const std::vector<Case> cases{
      {{{2, 4096}, {3, 1024}, {4, 1024}}, 1024, "no item 0x1 with a value (--number)"},
      {{{1, 5}, {3, 1025}, {4, 1024}},
       1024,
       "1024 bytes from 1025 on are no part of a heap of 4 with 1024 bytes each (--heap-packets, "
       "--payload)"},
      {{{1, 5}, {3, 4096}, {4, 1024}},
       1024,
       "1024 bytes from 4096 on are no part of a heap of 4 with 1024 bytes each (--heap-packets, "
       "--payload)"},
      {{{1, 5}, {4, 1024}},
       1024,
       "1024 bytes from 0 on are no part of a heap of 4 with 1024 bytes each (--heap-packets, "
       "--payload)"},
      {{{1, 5}, {3, 1024}, {4, 1024}}, 1023, "1023 bytes behind its items, which say 1024"},
      {{{1, 5}, {3, 1024}, {4, 1024}}, 1025, "1057 bytes, and its items say 1056"},
      {{{1, 5}, {3, 1024}, {4, 1024}, {7, 0}, {7, 0}, {7, 0}, {7, 0}, {7, 0}},
       1024,
       "8 items, not up to 7 (--items)"},
  };
  for (const Case& c : cases) {
    const auto packet = spead(c.items, c.payload);
    EXPECT_FALSE(number_of(kHeaps, packet)) << c.why;
    EXPECT_EQ(explain(kHeaps, packet), c.why);
  }
  // Any beginning of a packet can be asked.
  const auto whole = spead(good, 1024);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(number_of(kHeaps, ConstPacket{whole}.first(size))) << size;
    EXPECT_FALSE(explain(kHeaps, ConstPacket{whole}.first(size)).empty());
  }
}

TEST(Places, AreToldAsTheyAreGiven) {
  for (const char* const text : {"0:8:be", "2:6:le", "0:8:be:16:1", "8:4:le:2:16:20"}) {
    EXPECT_EQ(text_of(Format::raw, place_of(Format::raw, text)), text);
  }
  EXPECT_EQ(text_of(Format::spead, place_of(Format::spead, "0x1600:4096")), "0x1600:4096");
  EXPECT_EQ(text_of(Format::vdif, place_of(Format::vdif, "thread")), "thread");
}

TEST(SpeadPacket, RefusesItemsThatNoPacketHas) {
  for (const char* const text : {"", "x", "0x", "1:", "1:2:3", "0x1600:-1", "99999999"}) {
    EXPECT_THROW(place_of(Format::spead, text), kit::Failure) << text;
  }
  for (const char* const text : {"0", "0x8000", "5:0"}) {
    Shape shape = kHeaps;
    shape.number = place_of(Format::spead, text);
    EXPECT_THROW(shape.check(), kit::Failure) << text;
  }
  EXPECT_THROW((Shape{.format = Format::spead, .items = 4}.check()), kit::Failure);
  EXPECT_THROW((Shape{.format = Format::spead, .address_bits = 56}.check()), kit::Failure);
}

TEST(RawPacket, Bytes) {
  const Shape shape{.format = Format::raw, .payload = 8};
  EXPECT_EQ(header(shape, 3, 0x0102030405060708), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(number_of(shape, packet_with(shape, {1, 2, 3, 4, 5, 6, 7, 8})), 0x0102030405060708U);
}

// As VTP has it: the lowest byte first.
TEST(RawPacket, CountsInTheOrderThatWasTold) {
  const Shape shape{.format = Format::raw, .payload = 8, .number = place_of(Format::raw, "0:8:le")};
  EXPECT_EQ(header(shape, 3, 0x0102030405060708), (std::vector<uint8_t>{8, 7, 6, 5, 4, 3, 2, 1}));
}

// A header of two words: packets begin at every 16th sample of a 38 bit counter above 18 bits of
// other things, and the stream is in the lowest 6.
TEST(RawPacket, HasItsNumbersWhereTheyWereTold) {
  const Shape shape{.format = Format::raw,
                    .payload = 8,
                    .header = 16,
                    .number = place_of(Format::raw, "8:8:be:18:16:38"),
                    .stream_number = place_of(Format::raw, "8:8:be:0:1:6")};
  EXPECT_NO_THROW(shape.check());
  EXPECT_EQ(shape.header_bytes(), 16U);
  EXPECT_TRUE(shape.names_streams());
  // 5 x 16 x 2^18 + 33
  const std::vector<uint8_t> expected{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x40, 0, 33};
  EXPECT_EQ(header(shape, 33, 5), expected);
  auto bytes = expected;
  bytes[8] = 0x7f;   // a version above the counter
  bytes[14] = 0xff;  // a channel below it
  Header read = read_header(shape, packet_with(shape, bytes));
  EXPECT_TRUE(read.is(5));
  EXPECT_EQ(read.stream, 33U);
  // 38 bits in steps of 16 are 34 bits of numbers, and then it begins again.
  EXPECT_TRUE(read.is((uint64_t{7} << 34) + 5));
  EXPECT_FALSE(read.is((uint64_t{7} << 33) + 5));
  auto packet = packet_with(shape, bytes);
  advance(shape, 1000, packet);
  EXPECT_EQ(number_of(shape, packet), 1005U);
  EXPECT_EQ(packet[8], std::byte{0x7f});
  EXPECT_EQ(packet[14], std::byte{0xff});
}

TEST(RawPacket, RefusesPlacesThatNoHeaderHas) {
  for (const char* const text :
       {"", "0", "0:", ":8", "0:0", "8:be", "0:8:me", "0:8:be:", "0:8:be:0:1:64:0", "0:8:be:-1",
        "0:8 ", "99999999:8", "0:8:be:0:99999999999999999999"}) {
    EXPECT_THROW(place_of(Format::raw, text), kit::Failure) << text;
  }
  for (const char* const text :
       {"0:9", "0:2:be:16", "0:2:be:8:1:9", "0:8:be:0:0", "0:1:be:0:256", "65530:8"}) {
    EXPECT_THROW(
        (Shape{.format = Format::raw, .payload = 8, .number = place_of(Format::raw, text)}.check()),
        kit::Failure)
        << text;
  }
  EXPECT_THROW(
      (Shape{
          .format = Format::raw, .payload = 8, .header = 15, .number = place_of(Format::raw, "8:8")}
           .check()),
      kit::Failure);
  EXPECT_EQ(
      place_of(Format::raw, "4:3:le:2:5:7"),
      (Place{.at = 4, .bytes = 3, .order = ByteOrder::little, .shift = 2, .step = 5, .bits = 7}));
}

constexpr Shape kFrames{
    .format = Format::vdif, .bits = 2, .payload = 8000, .frames_per_second = 25'600};
// 2026-07-01T00:00:10, frame 3: 9678 days and 10 seconds after 2000 began.
constexpr uint64_t kInJuly = uint64_t{9678ULL * 86'400 + 10} * 25'600 + 3;

// Words of 4 bytes, little-endian: second, epoch and frame, length / 8, bits - 1 and thread and
// station.
TEST(VdifPacket, Bytes) {
  const std::vector<uint8_t> expected{10, 0, 0, 0, 3, 0, 0, 53, 0xec, 3, 0, 0, 1, 0, 5, 4,
                                      0,  0, 0, 0, 0, 0, 0, 0,  0,    0, 0, 0, 0, 0, 0, 0};
  EXPECT_NO_THROW(kFrames.check());
  EXPECT_EQ(kFrames.packet_bytes(), 8032U);
  EXPECT_EQ(header(kFrames, 5, kInJuly), expected);
  const Header read = read_header(kFrames, packet_with(kFrames, expected));
  EXPECT_TRUE(read.is(kInJuly));
  EXPECT_EQ(read.origin, (Origin{.station = 1, .unit = 5}));
  EXPECT_EQ(read.stream, std::nullopt);
  // The number of a moment counts from 2000, too: this was at 1782864010 s since 1970.
  EXPECT_EQ(kFrames.number_at(1'782'864'010'000'000'000), kInJuly - 3);
}

TEST(VdifPacket, OfAnyEpochHasTheSameNumber) {
  auto bytes = header(kFrames, 5, kInJuly);
  // Since January, 181 days before.
  const uint32_t second = 181 * 86'400 + 10;
  for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<uint8_t>(second >> (8 * i));
  bytes[7] = 52;
  auto packet = packet_with(kFrames, bytes);
  EXPECT_EQ(number_of(kFrames, packet), kInJuly);
  // One that is made later keeps its epoch: 25599 frames later is the last but one of the next
  // second.
  advance(kFrames, 25'599, packet);
  EXPECT_EQ(number_of(kFrames, packet), kInJuly + 25'599);
  EXPECT_EQ(packet[7], std::byte{52});
  EXPECT_EQ(packet[4], std::byte{2});
}

TEST(VdifPacket, LegacyAndBehindVtp) {
  Shape shape = kFrames;
  shape.legacy = true;
  shape.vtp = true;
  shape.stream_number = place_of(Format::vdif, "thread");
  EXPECT_EQ(shape.packet_bytes(), 8U + 16 + 8000);
  const auto made = header(shape, 9, kInJuly);
  // A frame of 1002 x 8 bytes.
  EXPECT_EQ(std::vector<uint8_t>(made.begin() + 8, made.end()),
            (std::vector<uint8_t>{10, 0, 0, 0x40, 3, 0, 0, 53, 0xea, 3, 0, 0, 1, 0, 9, 4}));
  uint64_t sequence = 0;
  for (unsigned i = 0; i < 8; ++i) sequence |= uint64_t{made[i]} << (8 * i);
  EXPECT_EQ(sequence, kInJuly);
  const Header read = read_header(shape, packet_with(shape, made));
  EXPECT_TRUE(read.is(kInJuly));
  EXPECT_EQ(read.stream, 9U);
}

TEST(VdifPacket, OfAnotherKindIsNone) {
  const auto with = [](size_t at, uint8_t value) {
    auto bytes = header(kFrames, 5, kInJuly);
    bytes[at] = value;
    return packet_with(kFrames, bytes);
  };
  EXPECT_EQ(read_header(kFrames, with(3, 0x40)).verdict, Verdict::wrong_shape);
  EXPECT_EQ(explain(kFrames, with(3, 0x40)), "a header of 16 bytes (--legacy)");
  EXPECT_EQ(explain(kFrames, with(8, 0xea)), "a frame of 8016 bytes, not 8032 (--payload, --vtp)");
  // Frame 25603 of 25600.
  auto late = header(kFrames, 5, kInJuly);
  late[5] = 100;
  EXPECT_EQ(read_header(kFrames, packet_with(kFrames, late)).verdict, Verdict::no_time);
  EXPECT_EQ(explain(kFrames, packet_with(kFrames, late)),
            "frame 25603 of a second of 25600 (--frames-per-second)");
  // Samples that are not valid.
  EXPECT_EQ(read_header(kFrames, with(3, 0x80)).verdict, Verdict::flagged);
  EXPECT_TRUE(read_header(kFrames, with(3, 0x80)).is(kInJuly));
  EXPECT_THROW((Shape{.format = Format::vdif}.check()), kit::Failure);
  EXPECT_THROW((Shape{.format = Format::vdif, .payload = 8001, .frames_per_second = 1}.check()),
               kit::Failure);
  EXPECT_THROW(place_of(Format::vdif, "0:8"), kit::Failure);
  EXPECT_THROW(place_of(Format::rsp, "0:8"), kit::Failure);
}

constexpr Shape kLofar2Shape{.format = Format::lofar2, .beamlets = 488, .slices = 4, .bits = 8};

// All fields big-endian; a block is 5120 ns.
TEST(Lofar2Packet, Bytes) {
  const std::vector<uint8_t> expected{'b', 5, 0, 0, 0, 0,    0,    4,    0, 0, 0, 0, 0, 0, 0, 0,
                                      0,   0, 0, 4, 1, 0xe8, 0x14, 0x00, 0, 1, 2, 3, 4, 5, 6, 8};
  EXPECT_NO_THROW(kLofar2Shape.check());
  EXPECT_EQ(kLofar2Shape.packet_bytes(), 32U + 7808);
  EXPECT_EQ(header(kLofar2Shape, 3, 0x0001020304050608 / 4), expected);
  auto bytes = expected;
  bytes[31] = 11;  // a packet may begin with any block
  bytes[18] = 12;  // its first beamlet
  const Header read = read_header(kLofar2Shape, packet_with(kLofar2Shape, bytes));
  EXPECT_TRUE(read.is(0x0001020304050608 / 4));
  EXPECT_EQ(read.origin, (Origin{.station = 4, .unit = 12, .clock = 200}));
}

TEST(Lofar2Packet, OfAnotherKindIsNone) {
  const auto said = [](size_t at, uint8_t value, uint32_t clock = 0) {
    Shape shape = kLofar2Shape;
    shape.clock = clock;
    auto bytes = header(kLofar2Shape, 0, 77);
    bytes[at] = value;
    EXPECT_FALSE(number_of(shape, packet_with(shape, bytes)));
    return explain(shape, packet_with(shape, bytes));
  };
  EXPECT_EQ(said(0, 'S'), "the marker 0x53, not 0x62");
  EXPECT_EQ(said(19, 3), "3 blocks, not 4 (--slices)");
  EXPECT_EQ(said(21, 0), "256 beamlets, not 488 (--beamlets)");
  EXPECT_EQ(said(22, 0x19, 200), "slices of 6400 ns, not of a clock of 200 MHz (--clock)");
}

TEST(Shape, RefusesWhatNoPacketHas) {
  EXPECT_NO_THROW(Shape{}.check());
  EXPECT_THROW((Shape{.bits = 12}.check()), kit::Failure);
  EXPECT_THROW((Shape{.clock = 180}.check()), kit::Failure);
  EXPECT_THROW((Shape{.beamlets = 256}.check()), kit::Failure);
  EXPECT_THROW((Shape{.slices = 0}.check()), kit::Failure);
  EXPECT_THROW((Shape{.format = Format::raw, .payload = 65'500}.check()), kit::Failure);
  EXPECT_THROW((Shape{.beamlets = 255, .slices = 255}.check()), kit::Failure);
}

// Options of other formats change nothing, and those of this one do.
TEST(Shape, IsTakenByWhatItsFormatLooksAt) {
  const Shape raw{.format = Format::raw, .payload = 900};
  EXPECT_TRUE(raw.takes({.format = Format::raw,
                         .beamlets = 122,
                         .slices = 4,
                         .bits = 8,
                         .clock = 160,
                         .payload = 900,
                         .heap_packets = 4,
                         .header = 8,
                         .number = place_of(Format::raw, "0:8:be"),
                         .address_bits = 40,
                         .items = 3,
                         .frames_per_second = 40,
                         .legacy = true,
                         .vtp = true}));
  EXPECT_FALSE(raw.takes({.format = Format::raw, .payload = 904}));
  EXPECT_FALSE(raw.takes({.format = Format::raw, .payload = 900, .header = 16}));
  EXPECT_FALSE(raw.takes(
      {.format = Format::raw, .payload = 900, .number = place_of(Format::raw, "0:8:be:0:2")}));
  EXPECT_FALSE(raw.takes({.format = Format::spead, .payload = 900}));

  const Shape rsp{.beamlets = 122, .bits = 8};
  EXPECT_TRUE(rsp.takes({.beamlets = 122, .bits = 8, .payload = 1, .header = 9, .vtp = true}));
  EXPECT_TRUE(rsp.takes({.beamlets = 122, .bits = 8, .clock = 160}));
  EXPECT_FALSE(rsp.takes({.beamlets = 61, .bits = 8}));
  EXPECT_FALSE((Shape{.clock = 200}.takes({.clock = 160})));

  const Shape spead{.format = Format::spead, .payload = 64};
  EXPECT_TRUE(spead.takes({.format = Format::spead,
                           .beamlets = 2,
                           .bits = 4,
                           .payload = 64,
                           .number = place_of(Format::spead, "1")}));
  EXPECT_FALSE(spead.takes({.format = Format::spead, .payload = 64, .heap_packets = 2}));
  EXPECT_FALSE(spead.takes({.format = Format::spead, .payload = 64, .items = 9}));

  const Shape vdif{.format = Format::vdif, .payload = 64, .frames_per_second = 40};
  EXPECT_TRUE(vdif.takes({.format = Format::vdif,
                          .bits = 2,
                          .clock = 160,
                          .payload = 64,
                          .items = 3,
                          .frames_per_second = 40}));
  EXPECT_FALSE(
      vdif.takes({.format = Format::vdif, .payload = 64, .frames_per_second = 40, .legacy = true}));
}

// The order of bytes, and nothing else, is left open where nobody has told of the number.
TEST(RawPacket, OfEitherOrderIsTakenWhereNobodyHasTold) {
  const Shape open{.format = Format::raw, .payload = 16};
  Shape little = open;
  little.number = place_of(Format::raw, "0:8:le");
  EXPECT_TRUE(open.is_open());
  EXPECT_FALSE(little.is_open());
  EXPECT_TRUE(open.takes(little));
  EXPECT_EQ(open.closed_by(little), little);
  EXPECT_FALSE(little.takes(open));
  EXPECT_FALSE(little.takes(learned(open, {})));
  EXPECT_FALSE(learned(open, {}).takes(little));
  EXPECT_TRUE(open.takes(open));
  EXPECT_EQ(open.closed_by(open).number, place_of(Format::raw, "0:8:be"));
}

TEST(RawPacket, ShowsTheOrderOfItsCounter) {
  const Shape open{.format = Format::raw, .payload = 16};
  for (const char* const place : {"0:8:be", "0:8:le"}) {
    Shape written = open;
    written.number = place_of(Format::raw, place);
    // The numbers of some boards: from 0, of samples, of a clock, and with one that was overtaken.
    for (const auto& [first, step] : {std::pair<uint64_t, uint64_t>{0, 1},
                                      {250, 1},
                                      {uint64_t{1} << 40, 4096},
                                      {1'700'000'000'000'000'000, 81'920}}) {
      std::vector<std::vector<std::byte>> packets(kPacketsToLearn);
      for (size_t i = 0; i < packets.size(); ++i) {
        packets[i].resize(written.packet_bytes());
        write_header(written, 0, first + (i ^ 1) * step, packets[i]);
      }
      const std::vector<ConstPacket> seen(packets.begin(), packets.end());
      EXPECT_EQ(learned(open, seen), written) << place << " from " << first;
      // Who was told is not taught.
      EXPECT_EQ(learned(written, seen), written);
    }
  }
}

// As a capture that begins again: across seconds, and with slices that begin no packet of ours.
TEST(Packets, AreMadeLaterOnes) {
  for (const Shape& shape :
       {Shape{}, Shape{.format = Format::spead, .payload = 64, .heap_packets = 4},
        Shape{.format = Format::raw, .payload = 16},
        Shape{.format = Format::vdif, .payload = 16, .frames_per_second = 25'600, .vtp = true},
        kLofar2Shape}) {
    for (const uint64_t by : {4ULL, 12'208ULL, 1'000'000ULL}) {
      // Of VDIF: in 2024.
      const uint64_t number = 19'531'250'000'003;
      std::vector<std::byte> packet(shape.packet_bytes(), std::byte{0x5a});
      std::vector<std::byte> later = packet;
      write_header(shape, 6, number, packet);
      write_header(shape, 6, number + by, later);
      advance(shape, by, packet);
      EXPECT_EQ(packet, later) << name_of(shape.format) << " by " << by;
    }
  }
  const Shape rsp;
  auto packet = packet_with(rsp, {3, 0x80, 0, 0, 1, 0, 61, 16, 1, 0, 0, 0, 18, 0, 0, 0});
  advance(rsp, 12'208, packet);
  // 195313 + 18 + 12208 * 16 = 390659, and second 2 begins with slice 390625.
  EXPECT_EQ(packet, packet_with(rsp, {3, 0x80, 0, 0, 1, 0, 61, 16, 2, 0, 0, 0, 34, 0, 0, 0}));
}

}  // namespace
}  // namespace weft::stream
