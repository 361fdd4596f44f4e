#include "sdp/sockets/pieces.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace weft::sdp {
namespace {

// Where each piece stands in `memory`, and how long it is.
std::vector<iovec> pieces_of(std::array<std::byte, 8>& memory,
                             const std::vector<std::pair<size_t, size_t>>& places) {
  std::vector<iovec> all;
  for (const auto& [at, bytes] : places) all.push_back({memory.data() + at, bytes});
  return all;
}

TEST(Pieces, RestIsWhatIsLeftOfTheNextPiece) {
  std::array<std::byte, 8> memory{};
  const auto all = pieces_of(memory, {{5, 3}, {0, 2}});
  Pieces pieces{all};
  EXPECT_EQ(pieces.wanted(), 5U);
  EXPECT_EQ(pieces.rest().data(), memory.data() + 5);
  EXPECT_EQ(pieces.rest().size(), 3U);
  pieces.moved(2);
  EXPECT_EQ(pieces.rest().data(), memory.data() + 7);
  EXPECT_EQ(pieces.rest().size(), 1U);
  EXPECT_FALSE(pieces.all_done());
  pieces.moved(1);
  EXPECT_EQ(pieces.rest().data(), memory.data());
  EXPECT_EQ(pieces.rest().size(), 2U);
  pieces.moved(2);
  EXPECT_TRUE(pieces.rest().empty());
  EXPECT_TRUE(pieces.all_done());
  EXPECT_EQ(pieces.done(), 5U);
}

TEST(Pieces, EmptyOnesArePassedOver) {
  std::array<std::byte, 8> memory{};
  const auto all = pieces_of(memory, {{0, 0}, {3, 1}, {1, 0}, {2, 0}, {6, 2}, {4, 0}});
  Pieces pieces{all};
  EXPECT_EQ(pieces.rest().data(), memory.data() + 3);
  pieces.moved(1);
  EXPECT_EQ(pieces.rest().data(), memory.data() + 6);
  pieces.moved(2);
  EXPECT_TRUE(pieces.rest().empty());
  EXPECT_EQ(pieces.done(), 3U);
}

TEST(Pieces, OfNothingNothingIsLeft) {
  Pieces none{{}};
  EXPECT_TRUE(none.rest().empty());
  EXPECT_TRUE(none.all_done());
}

}  // namespace
}  // namespace weft::sdp
