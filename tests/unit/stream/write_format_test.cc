#include "stream/write_format.h"

#include <gtest/gtest.h>

namespace weft::stream {
namespace {

TEST(WriteFormat, ImmediateHasTheNumberAboveTheCount) {
  EXPECT_EQ(immediate_of({.number = 0x123456, .packets = 1}), 0x12345600U);
  EXPECT_EQ(immediate_of({.number = 0xffffff, .packets = 256}), 0xffffffffU);
  const Mark mark = mark_of(0x00010203);
  EXPECT_EQ(mark.number, 0x000102U);
  EXPECT_EQ(mark.packets, 4U);
}

TEST(WriteFormat, TrailerIsTheEndOfTheSlot) {
  EXPECT_EQ(slot_bytes_for(7824), 7840U);
  EXPECT_EQ(slot_bytes_for(8200), 8224U);
  std::byte bytes[16];
  write_trailer(bytes, {.number = 0x0102030405060708, .crc = 0x0a0b0c0d, .zero = 0});
  const unsigned char expected[] = {8, 7, 6, 5, 4, 3, 2, 1, 0x0d, 0x0c, 0x0b, 0x0a, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(bytes, expected, sizeof expected), 0);
}

}  // namespace
}  // namespace weft::stream
