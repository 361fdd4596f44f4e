#include "wire/ddp_header.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;

TEST(Control, EachField) {
  // spec/rdmap 1.1
  const auto parse = [](const char* hex) { return Control::parse(from_hex(hex).data()); };
  EXPECT_TRUE(parse("80 00").tagged);
  EXPECT_FALSE(parse("7f ff").tagged);
  EXPECT_TRUE(parse("40 00").last);
  EXPECT_FALSE(parse("bf ff").last);
  EXPECT_TRUE(parse("00 10").ack_wanted);
  EXPECT_FALSE(parse("ff ef").ack_wanted);
  for (uint8_t v = 0; v < 4; ++v) {
    const Buffer b{std::byte{v}, static_cast<std::byte>(v << 6)};
    EXPECT_EQ(Control::parse(b.data()).ddp_version, v);
    EXPECT_EQ(Control::parse(b.data()).rdmap_version, v);
  }
  for (uint8_t op = 0; op < 16; ++op) {
    const Buffer b{std::byte{0}, std::byte{op}};
    EXPECT_EQ(static_cast<uint8_t>(Control::parse(b.data()).opcode), op);
  }
}

TEST(Control, ReservedBitsAreIgnoredAndSentAsZero) {
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const Buffer b{static_cast<std::byte>(first), static_cast<std::byte>(second)};
      Buffer again(Control::kSize);
      Control::parse(b.data()).encode(again.data());
      ASSERT_EQ(std::to_integer<unsigned>(again[0]), first & 0xc3) << to_hex(b);
      ASSERT_EQ(std::to_integer<unsigned>(again[1]), second & 0xdf) << to_hex(b);
    }
  }
}

TEST(Control, DefaultsAreVersion1) {
  Buffer b(Control::kSize);
  Control{.tagged = true, .last = true, .opcode = Opcode::write}.encode(b.data());
  EXPECT_EQ(to_hex(b), "c1 40");
  Control{.opcode = Opcode::send}.encode(b.data());
  EXPECT_EQ(to_hex(b), "01 43");
  Control{.last = true, .ack_wanted = true, .opcode = Opcode::send}.encode(b.data());
  EXPECT_EQ(to_hex(b), "41 53");
}

TEST(TaggedHeader, LayoutOfTheSpecification) {
  const Buffer b = from_hex("81 42 | 01 02 03 04 | 11 12 13 14 15 16 17 18");
  ASSERT_EQ(b.size(), TaggedHeader::kSize);
  const TaggedHeader h = TaggedHeader::parse(b.data());
  EXPECT_TRUE(h.control.tagged);
  EXPECT_FALSE(h.control.last);
  EXPECT_EQ(h.control.opcode, Opcode::read_response);
  EXPECT_EQ(h.stag, Stag{0x01020304});
  EXPECT_EQ(h.to, TaggedOffset{0x1112131415161718});
  Buffer again(TaggedHeader::kSize);
  h.encode(again.data());
  EXPECT_EQ(to_hex(again), to_hex(b));
  EXPECT_TRUE(TaggedHeader{}.control.tagged);
}

TEST(UntaggedHeader, LayoutOfTheSpecification) {
  const Buffer b = from_hex("41 46 | 01 02 03 04 | 11 12 13 14 | 21 22 23 24 | 31 32 33 34");
  ASSERT_EQ(b.size(), UntaggedHeader::kSize);
  const UntaggedHeader h = UntaggedHeader::parse(b.data());
  EXPECT_FALSE(h.control.tagged);
  EXPECT_TRUE(h.control.last);
  EXPECT_EQ(h.control.opcode, Opcode::send_se_inv);
  EXPECT_EQ(h.ulp_word, 0x01020304U);
  EXPECT_EQ(h.qn, QueueNumber{0x11121314});
  EXPECT_EQ(h.msn, Msn{0x21222324});
  EXPECT_EQ(h.mo, MessageOffset{0x31323334});
  Buffer again(UntaggedHeader::kSize);
  h.encode(again.data());
  EXPECT_EQ(to_hex(again), to_hex(b));
  EXPECT_FALSE(UntaggedHeader{}.control.tagged);
}

TEST(DdpHeader, SizeDependsOnTheTag) {
  static_assert(ddp_header_size(true) == 14 && ddp_header_size(false) == 18);
}

TEST(DdpHeader, ToStringNamesEveryField) {
  TaggedHeader t;
  t.control.last = true;
  t.stag = Stag{0x55667788};
  t.to = TaggedOffset{0x7f0000008000};
  EXPECT_EQ(t.to_string(), "tagged (RDMA Write, last DV 1 RV 1) STag 0x55667788 TO 0x7f0000008000");
  UntaggedHeader u;
  u.control.opcode = Opcode::send_imm;
  u.control.ack_wanted = true;
  u.ulp_word = 0xcafef00d;
  u.qn = QueueNumber{3};
  u.msn = Msn{4};
  u.mo = MessageOffset{5};
  EXPECT_EQ(u.to_string(),
            "untagged (Send with Immediate, AW DV 1 RV 1) QN 3 MSN 4 MO 5 ULP word 0xcafef00d");
}

TEST(MinUlpdu, ColumnOfTheSpecification) {
  const size_t expected[] = {14, 46, 14, 18, 18, 18, 18, 22, 26, 26, 70, 30, 18, 18, 14, 18};
  for (uint8_t op = 0; op < 16; ++op) {
    EXPECT_EQ(min_ulpdu(static_cast<Opcode>(op)), expected[op]) << unsigned{op};
  }
}

TEST(MinUlpdu, CoversTheHeaderThatIsParsed) {
  for (uint8_t op = 0; op < 15; ++op) {
    const auto o = static_cast<Opcode>(op);
    EXPECT_GE(min_ulpdu(o), ddp_header_size(is_tagged(o))) << unsigned{op};
  }
}

}  // namespace
}  // namespace weft::wire
