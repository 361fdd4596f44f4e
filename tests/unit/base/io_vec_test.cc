#include "base/io_vec.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(PieceList, AddsUpItsPieces) {
  char memory[100];
  PieceList list;
  EXPECT_TRUE(list.pieces().empty());
  EXPECT_TRUE(list.add(memory, 10));
  EXPECT_TRUE(list.add(memory + 50, 7));
  EXPECT_EQ(list.bytes(), 17U);
  ASSERT_EQ(list.pieces().size(), 2U);
  EXPECT_EQ(list.pieces()[0].iov_base, memory);
  EXPECT_EQ(list.pieces()[0].iov_len, 10U);
  EXPECT_EQ(list.pieces()[1].iov_base, memory + 50);
  EXPECT_EQ(list.pieces()[1].iov_len, 7U);
}

TEST(PieceList, EmptyPiecesLeaveNoTrace) {
  PieceList list;
  EXPECT_TRUE(list.add(nullptr, 0));
  EXPECT_TRUE(list.pieces().empty());
  EXPECT_EQ(list.bytes(), 0U);
}

TEST(PieceList, RefusesOneAboveTheLimitAndStaysAsItWas) {
  char memory[PieceList::kMost + 1];
  PieceList list;
  for (size_t i = 0; i < PieceList::kMost; ++i) ASSERT_TRUE(list.add(memory + i, 1)) << i;
  EXPECT_FALSE(list.add(memory + PieceList::kMost, 1));
  EXPECT_TRUE(list.add(memory, 0));
  EXPECT_EQ(list.pieces().size(), PieceList::kMost);
  EXPECT_EQ(list.bytes(), PieceList::kMost);
}

TEST(PieceList, ClearMakesRoom) {
  char memory[4];
  PieceList list;
  ASSERT_TRUE(list.add(memory, 4));
  list.clear();
  EXPECT_TRUE(list.pieces().empty());
  EXPECT_EQ(list.bytes(), 0U);
  EXPECT_TRUE(list.add(memory + 1, 2));
  EXPECT_EQ(list.bytes(), 2U);
}

}  // namespace
}  // namespace weft
