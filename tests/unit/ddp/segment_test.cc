#include "ddp/segment.h"

#include <gtest/gtest.h>

#include "tests/support/fpdu.h"
#include "tests/support/spec_example.h"

namespace weft::ddp {
namespace {

using test::Buffer;
using test::from_hex;

Buffer ulpdu_of(const Buffer& frame) {
  const Bytes u = test::split_fpdu(frame).ulpdu;
  return {u.begin(), u.end()};
}

TEST(Segment, Untagged) {
  const Buffer u = ulpdu_of(test::example("E4 Read Request"));
  Segment s;
  s.read(Bytes{u}.first(18), u.size());
  EXPECT_FALSE(s.control.tagged);
  EXPECT_TRUE(s.control.last);
  EXPECT_EQ(s.control.opcode, wire::Opcode::read_request);
  EXPECT_EQ(s.qn, kReadRequestQueue);
  EXPECT_EQ(s.msn, Msn{1});
  EXPECT_EQ(s.mo, MessageOffset{0});
  EXPECT_EQ(s.payload, 28U);
  EXPECT_EQ(s.ulpdu, 46U);
  EXPECT_EQ(test::to_hex(s.header_bytes()), test::to_hex(Bytes{u}.first(18)));
}

TEST(Segment, Tagged) {
  const Buffer u = ulpdu_of(test::example("E6 Write"));
  Segment s;
  s.read(Bytes{u}.first(14), u.size());
  EXPECT_TRUE(s.control.tagged);
  EXPECT_EQ(s.stag, Stag{0x55667788});
  EXPECT_EQ(s.to, TaggedOffset{0x00007f0000008000});
  EXPECT_EQ(s.payload, 64U);
  EXPECT_EQ(test::to_hex(s.header_bytes()), test::to_hex(Bytes{u}.first(14)));
}

TEST(Segment, TheInvalidateStagOrImmediateIsTheUlpWord) {
  const Buffer u = from_hex("41 44 de ad be ef 00 00 00 00 ff ff ff ff 00 00 00 07");
  Segment s;
  s.read(u, u.size());
  EXPECT_EQ(s.ulp_word, 0xdeadbeefU);
  EXPECT_EQ(s.msn, Msn{0xffffffff});
  EXPECT_EQ(s.mo, MessageOffset{7});
  EXPECT_EQ(s.payload, 0U);
}

TEST(Segment, TheLongestUlpdu) {
  Buffer u = from_hex("c1 40 00 00 00 01 00 00 00 00 00 00 00 00");
  Segment s;
  s.read(u, wire::kMaxUlpdu);
  EXPECT_EQ(s.ulpdu, 65535U);
  EXPECT_EQ(s.payload, 65535U - 14);
}

}  // namespace
}  // namespace weft::ddp
