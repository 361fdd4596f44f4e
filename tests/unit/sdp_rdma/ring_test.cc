#include "sdp/rdma/ring.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace weft::sdp {
namespace {

TEST(Ring, GivesInOrderWhatItWasGiven) {
  Ring<int, 3> ring;
  EXPECT_TRUE(ring.empty());
  int next = 0;
  int oldest = 0;
  for (int turn = 0; turn < 7; ++turn) {
    while (!ring.full()) ring.push_back(next++);
    EXPECT_EQ(ring.back(), next - 1);
    for (size_t i = 0; i < ring.size(); ++i) EXPECT_EQ(ring[i], oldest + static_cast<int>(i));
    for (int n = 0; n < 2; ++n, ring.pop_front()) EXPECT_EQ(ring.front(), oldest++);
    EXPECT_EQ(ring.size(), 1U);
  }
}

// Nothing of it is allocated later.
TEST(Ring, HasItsMemoryFromTheStart) {
  EXPECT_TRUE((std::is_trivially_destructible_v<Ring<int, 3>>));
  EXPECT_GE(sizeof(Ring<int, 1000>), 1000 * sizeof(int));
}

}  // namespace
}  // namespace weft::sdp
