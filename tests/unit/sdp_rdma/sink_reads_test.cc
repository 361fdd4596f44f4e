#include "sdp/rdma/sink_reads.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::sdp {
namespace {

// Two threads of a program receive in place: each hears of its own memory.
TEST(SinkReads, BeginNoOtherBeforeItsReaderHasTakenTheLast) {
  SinkReads reads;
  std::array<std::byte, 100> memory{};
  EXPECT_TRUE(reads.may_begin());
  reads.begin({memory.data(), 100, 7}, 60);
  EXPECT_FALSE(reads.may_begin());
  EXPECT_TRUE(reads.end().empty());
  EXPECT_FALSE(reads.under_way());
  EXPECT_FALSE(reads.may_begin());
  EXPECT_EQ(reads.take_arrived(), 60U);
  EXPECT_TRUE(reads.may_begin());
}

}  // namespace
}  // namespace weft::sdp
