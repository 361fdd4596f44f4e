#include "rdmap/inbound_reads.h"

#include <gtest/gtest.h>

namespace weft::rdmap {
namespace {

InboundRead of_size(uint32_t size) {
  return {.request = {.size = size}};
}

TEST(InboundReads, AnsweredInTheOrderOfTheRequests) {
  InboundReads reads(3);
  for (uint32_t round = 0; round < 10; ++round) {
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(reads.full());
      reads.push_back(of_size(round * 10 + i));
    }
    EXPECT_TRUE(reads.full());
    EXPECT_EQ(reads.back().request.size, round * 10 + 2);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(reads.front().request.size, round * 10 + i);
      reads.pop_front();
    }
    EXPECT_TRUE(reads.empty());
  }
}

TEST(InboundReads, AnIrdOfZeroTakesNone) {
  const InboundReads reads(0);
  EXPECT_TRUE(reads.full());
  EXPECT_TRUE(reads.empty());
}

}  // namespace
}  // namespace weft::rdmap
