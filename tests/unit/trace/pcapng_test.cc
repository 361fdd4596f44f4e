// Block layouts from draft-ietf-opsawg-pcapng, in the byte order of the machine: little-endian.
#include "trace/pcapng.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace weft::trace {
namespace {

using test::from_hex;
using test::from_text;
using test::to_hex;

TEST(FileHead, ASectionAndAnInterfaceOfBareIpPacketsWithNanoseconds) {
  const auto head = file_head("process 7, rping");
  const auto section = test::join({from_hex("0a0d0d0a 3c000000 4d3c2b1a 0100 0000 ffffffffffffffff"
                                            "0400 0400"),
                                   from_text("weft"), from_hex("0100 1000"),
                                   from_text("process 7, rping"), from_hex("0000 0000 3c000000")});
  const auto interface =
      test::join({from_hex("01000000 2c000000 6500 0000 1b000100 0200 0500"), from_text("weft0"),
                  from_hex("000000 0900 0100 09 000000 0000 0000 2c000000")});
  EXPECT_EQ(to_hex(head), to_hex(test::join({section, interface})));
}

TEST(FileHead, ALongCommentIsCut) {
  const auto head = file_head(std::string(5000, 'x'));
  uint32_t length = 0;
  std::memcpy(&length, head.data() + 4, sizeof length);
  EXPECT_LT(length, 1100U);
  uint32_t again = 0;
  std::memcpy(&again, head.data() + length - 4, sizeof again);
  EXPECT_EQ(again, length);
}

// What a reader finds in a block of `kept` payload bytes behind 40 of headers.
Packet packet_of(const test::Buffer& headers, size_t kept, size_t size, Direction direction) {
  return {.at = 0x0011223344556677,
          .direction = direction,
          .headers = headers,
          .payload = {},
          .kept = kept,
          .size = size};
}

TEST(BlockEnds, TimeLengthsAndDirection) {
  const auto headers = test::pattern(40, 1);
  const BlockEnds out{packet_of(headers, 88, 88, Direction::out)};
  EXPECT_EQ(to_hex(out.front()), to_hex(from_hex("06000000 ac000000 00000000 33221100 77665544"
                                                 "80000000 80000000")));
  EXPECT_EQ(to_hex(out.back()), to_hex(from_hex("0200 0400 02000000 00000000 ac000000")));
  EXPECT_EQ(out.block_size(), 172U);
  const BlockEnds in{packet_of(headers, 88, 88, Direction::in)};
  EXPECT_EQ(to_hex(in.back()), to_hex(from_hex("0200 0400 01000000 00000000 ac000000")));
}

TEST(BlockEnds, ThePacketIsPaddedToWords) {
  const auto headers = test::pattern(40, 1);
  for (size_t kept = 0; kept < 9; ++kept) {
    const BlockEnds ends{packet_of(headers, kept, kept, Direction::out)};
    const size_t padding = (4 - kept % 4) % 4;
    EXPECT_EQ(ends.block_size() % 4, 0U) << kept;
    EXPECT_EQ(ends.block_size(), ends.front().size() + 40 + kept + ends.back().size()) << kept;
    ASSERT_EQ(ends.back().size(), 16 + padding) << kept;
    for (size_t i = 0; i < padding; ++i) EXPECT_EQ(ends.back()[i], std::byte{0});
    EXPECT_EQ(to_hex(ends.back().subspan(padding, 4)), "02 00 04 00") << kept;
  }
}

TEST(BlockEnds, WhatIsNotKeptCountsInTheOriginalLengthAlone) {
  const auto headers = test::pattern(40, 1);
  const BlockEnds ends{packet_of(headers, 16, 60'000, Direction::out)};
  EXPECT_EQ(to_hex(ends.front().subspan(20)), to_hex(from_hex("38000000 88ea0000")));
}

}  // namespace
}  // namespace weft::trace
