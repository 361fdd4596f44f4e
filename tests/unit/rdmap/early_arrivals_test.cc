#include "rdmap/early_arrivals.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace weft::rdmap {
namespace {

using Kind = EarlyArrival::Kind;
using test::pattern;

ddp::Segment numbered(uint32_t msn) {
  ddp::Segment s;
  s.msn = Msn{msn};
  return s;
}

TEST(EarlyArrivals, FirstInFirstOut) {
  EarlyArrivals early;
  EXPECT_TRUE(early.empty());
  for (uint32_t msn = 1; msn <= 5; ++msn) early.add(Kind::send, numbered(msn));
  EXPECT_EQ(early.size(), 5U);
  EXPECT_EQ(early.back().first.msn, Msn{5});
  for (uint32_t msn = 1; msn <= 5; ++msn) {
    EXPECT_EQ(early.front().first.msn, Msn{msn});
    early.pop_front();
  }
  EXPECT_TRUE(early.empty());
}

TEST(EarlyArrivals, AMessageGrowsSegmentBySegment) {
  EarlyArrivals early;
  early.add(Kind::send, numbered(1));
  test::Buffer expected;
  for (size_t i = 0; i < 200; ++i) {
    const auto piece = pattern(i * 7 % 900, i);
    std::copy(piece.begin(), piece.end(), early.extend(piece.size()));
    expected.insert(expected.end(), piece.begin(), piece.end());
  }
  EXPECT_TRUE(early.front().data == expected);
  EXPECT_EQ(early.bytes(), expected.size());
  early.pop_front();
  EXPECT_EQ(early.bytes(), 0U);
}

TEST(EarlyArrivals, BytesAreThoseOfAllMessages) {
  EarlyArrivals early;
  early.add(Kind::send, numbered(1));
  early.extend(1000);
  early.add(Kind::read_request, numbered(1));
  early.extend(28);
  early.add(Kind::immediate, numbered(2));
  early.extend(8);
  EXPECT_EQ(early.bytes(), 1036U);
  early.pop_front();
  EXPECT_EQ(early.bytes(), 36U);
}

// They count against the IRD while they wait.
TEST(EarlyArrivals, RequestsAreCounted) {
  EarlyArrivals early;
  early.add(Kind::send, numbered(1));
  early.add(Kind::read_request, numbered(1));
  early.add(Kind::immediate, numbered(2));
  early.add(Kind::atomic_request, numbered(2));
  EXPECT_EQ(early.requests(), 2U);
  early.pop_front();
  EXPECT_EQ(early.requests(), 2U);
  early.pop_front();
  early.pop_front();
  EXPECT_EQ(early.requests(), 1U);
  early.pop_front();
  EXPECT_EQ(early.requests(), 0U);
}

}  // namespace
}  // namespace weft::rdmap
