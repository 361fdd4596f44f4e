#include "wire/rdmap_messages.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;

template <class Message>
std::string encoded(const Message& m) {
  Buffer b(Message::kSize + 1, std::byte{0xee});
  m.encode(b.data());
  EXPECT_EQ(b.back(), std::byte{0xee}) << "wrote beyond kSize";
  b.pop_back();
  return to_hex(b);
}

TEST(ReadRequest, LayoutOfTheSpecification) {
  const Buffer b = from_hex(
      "01 02 03 04 | 11 12 13 14 15 16 17 18 | 21 22 23 24 | 31 32 33 34 | 41 42 43 44 45 46 47 "
      "48");
  ASSERT_EQ(b.size(), ReadRequest::kSize);
  const ReadRequest r = ReadRequest::parse(b.data());
  EXPECT_EQ(r.sink_stag, Stag{0x01020304});
  EXPECT_EQ(r.sink_to, TaggedOffset{0x1112131415161718});
  EXPECT_EQ(r.size, 0x21222324U);
  EXPECT_EQ(r.source_stag, Stag{0x31323334});
  EXPECT_EQ(r.source_to, TaggedOffset{0x4142434445464748});
  EXPECT_EQ(encoded(r), to_hex(b));
  EXPECT_EQ(r.to_string(),
            "sink 0x01020304 at 0x1112131415161718, 555885348 bytes of source 0x31323334 at "
            "0x4142434445464748");
}

TEST(Immediate, FirstFourBytesCountTheRestIsZero) {
  // spec/rdmap 1.6
  const Buffer b = from_hex("01 02 03 04 a5 a6 a7 a8");
  ASSERT_EQ(b.size(), Immediate::kSize);
  EXPECT_EQ(Immediate::parse(b.data()).value, 0x01020304U);
  EXPECT_EQ(encoded(Immediate{0x01020304}), "01 02 03 04 00 00 00 00");
}

TEST(AtomicRequest, LayoutOfTheSpecification) {
  const Buffer b = from_hex(
      "00 00 00 02 | 01 02 03 04 | 11 12 13 14 | 21 22 23 24 25 26 27 28 | 31 32 33 34 35 36 37 38"
      "41 42 43 44 45 46 47 48 | 51 52 53 54 55 56 57 58 | 61 62 63 64 65 66 67 68");
  ASSERT_EQ(b.size(), AtomicRequest::kSize);
  const AtomicRequest a = AtomicRequest::parse(b.data());
  EXPECT_EQ(a.code, AtomicRequest::Code::compare_swap);
  EXPECT_EQ(a.request_id, 0x01020304U);
  EXPECT_EQ(a.stag, Stag{0x11121314});
  EXPECT_EQ(a.to, TaggedOffset{0x2122232425262728});
  EXPECT_EQ(a.add_swap, 0x3132333435363738U);
  EXPECT_EQ(a.add_swap_mask, 0x4142434445464748U);
  EXPECT_EQ(a.compare, 0x5152535455565758U);
  EXPECT_EQ(a.compare_mask, 0x6162636465666768U);
  EXPECT_EQ(encoded(a), to_hex(b));
  EXPECT_EQ(a.to_string(), "atomic 2 id 16909060 on 0x11121314 at 0x2122232425262728");
}

TEST(AtomicRequest, CodeIsTheLowFourBitsOfItsWord) {
  Buffer b = test::pattern(AtomicRequest::kSize, 1);
  for (unsigned code = 0; code < 16; ++code) {
    store_be<uint32_t>(b.data(), 0xfffffff0U | code);
    const AtomicRequest a = AtomicRequest::parse(b.data());
    EXPECT_EQ(static_cast<unsigned>(a.code), code);
    store_be<uint32_t>(b.data(), code);
    EXPECT_EQ(encoded(a), to_hex(b)) << "reserved bits are sent as zero";
  }
  EXPECT_EQ(static_cast<int>(AtomicRequest::Code::fetch_add), 0);
  EXPECT_EQ(static_cast<int>(AtomicRequest::Code::compare_swap), 2);
}

TEST(AtomicResponse, LayoutOfTheSpecification) {
  const Buffer b = from_hex("01 02 03 04 | 11 12 13 14 15 16 17 18");
  ASSERT_EQ(b.size(), AtomicResponse::kSize);
  const AtomicResponse r = AtomicResponse::parse(b.data());
  EXPECT_EQ(r.request_id, 0x01020304U);
  EXPECT_EQ(r.original, 0x1112131415161718U);
  EXPECT_EQ(encoded(r), to_hex(b));
}

TEST(Delivered, WaitingStandsAboveTheTimerCodes) {
  // spec/rdmap 4.5: 0x100 | min_rnr_timer code, and the codes are five bits.
  static_assert(kDeliveredWaiting == 0x100);
  EXPECT_EQ(kDeliveredWaiting & 0x1f, 0U);
}

}  // namespace
}  // namespace weft::wire
