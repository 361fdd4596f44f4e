#include "work/pieces.h"

#include <gtest/gtest.h>

#include "tests/support/append.h"
#include "tests/support/host.h"

namespace weft::work {
namespace {

using test::Buffer;

struct PiecesTest : ::testing::Test {
  LocalSegment segment(Buffer& m) { return {address(m), static_cast<uint32_t>(m.size()), stag(m)}; }
  static uint64_t address(const Buffer& m) { return reinterpret_cast<uintptr_t>(m.data()); }
  Stag stag(Buffer& m) { return host.add_region(m); }
  // As "offset in which buffer" would be hard to read: the bytes that the pieces show.
  static Buffer bytes(const PieceList& pieces) { return test::joined(pieces.pieces()); }
  static Buffer joined(const std::vector<const Buffer*>& parts, size_t from, size_t n) {
    Buffer all;
    for (const Buffer* p : parts) all.insert(all.end(), p->begin(), p->end());
    const auto begin = all.begin() + static_cast<ptrdiff_t>(from);
    return {begin, begin + static_cast<ptrdiff_t>(n)};
  }

  test::Host host;
  Buffer a = test::pattern_bytes(10, 1);
  Buffer b = test::pattern_bytes(5, 2);
  Buffer c = test::pattern_bytes(20, 3);
};

// Any part of a message, whatever segments it lies in; empty segments are nowhere.
TEST_F(PiecesTest, APartOfAMessageIsFoundInItsSegments) {
  LocalSegment nothing = segment(b);
  nothing.length = 0;
  const SendWqe& w = host.post({}, {segment(a), nothing, segment(b), segment(c)});
  const Buffer whole = joined({&a, &b, &c}, 0, 35);
  for (uint32_t from = 0; from <= 35; ++from) {
    for (uint32_t n = 0; from + n <= 35; ++n) {
      PieceList pieces;
      ASSERT_TRUE(local_pieces(host, w, from, n, Access::local_read, pieces).ok());
      ASSERT_EQ(bytes(pieces), joined({&a, &b, &c}, from, n)) << from << " " << n;
    }
  }
}

TEST_F(PiecesTest, OneByteBehindTheMessageIsOutOfBounds) {
  const SendWqe& w = host.post({}, {segment(a), segment(b)});
  PieceList pieces;
  const auto outside = local_pieces(host, w, 14, 2, Access::local_read, pieces);
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error(), MemoryFault::bounds);
}

// The region may be fewer bytes than the request says, or lack the right.
TEST_F(PiecesTest, TheRegionDecidesForTheSegmentThatIsAskedFor) {
  LocalSegment longer = segment(b);
  longer.length = 6;
  LocalSegment read_only = {address(c), 20, host.add_region(c, 0)};
  const SendWqe& w = host.post({}, {segment(a), longer, read_only});
  PieceList pieces;
  EXPECT_TRUE(local_pieces(host, w, 0, 10, Access::local_write, pieces).ok())
      << "the others are not looked at";
  const auto beyond = local_pieces(host, w, 10, 6, Access::local_write, pieces);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error(), MemoryFault::bounds);
  const auto right = local_pieces(host, w, 16, 1, Access::local_write, pieces);
  ASSERT_FALSE(right.ok());
  EXPECT_EQ(right.error(), MemoryFault::access);
}

// Inline data lies in the request, and its segments' keys mean nothing.
TEST_F(PiecesTest, InlineDataIsTheRequestsOwn) {
  SendWqe& w = host.post({.inlined = true, .length = 10});
  std::copy(a.begin(), a.end(), w.payload());
  PieceList pieces;
  ASSERT_TRUE(local_pieces(host, w, 3, 4, Access::local_read, pieces).ok());
  EXPECT_EQ(bytes(pieces), joined({&a}, 3, 4));
}

TEST_F(PiecesTest, AReceiveIsFilledSegmentBySegment) {
  host.post_receive(1, {segment(a), segment(b)});
  PieceList pieces;
  ASSERT_TRUE(receive_pieces(host, host.receives.front(), 8, 5, pieces).ok());
  EXPECT_EQ(bytes(pieces), joined({&a, &b}, 8, 5));
  EXPECT_EQ(pieces.pieces().size(), 2U);
  PieceList more;
  const auto beyond = receive_pieces(host, host.receives.front(), 8, 8, more);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error(), MemoryFault::bounds);
}

}  // namespace
}  // namespace weft::work
