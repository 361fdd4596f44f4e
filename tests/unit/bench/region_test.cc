#include "bench/region.h"

#include <gtest/gtest.h>

#include <cstring>

namespace weft::bench {
namespace {

constexpr uint64_t kMessage = 1 << 20;  // four slots

void copy_slot(Region& to, const Region& from, uint64_t slot) {
  std::memcpy(to.data() + slot * kMessage, from.data() + slot * kMessage, kMessage);
}

TEST(Region, HasWholeSlots) {
  EXPECT_EQ(Region{kMessage}.slots(), 4U);
  EXPECT_EQ(Region{1000}.size() % 1000, 0U);
  EXPECT_EQ(Region{100 << 20}.slots(), 1U);
}

TEST(Region, NeighbouringBytesAndSlotsDiffer) {
  Region region{kMessage};
  region.fill();
  size_t equal = 0;
  for (size_t i = 1; i < region.size(); ++i) {
    if (region.data()[i] == region.data()[i - 1]) ++equal;
  }
  EXPECT_LT(equal, region.size() / 128);
  EXPECT_NE(std::memcmp(region.data(), region.data() + kMessage, kMessage), 0);
}

TEST(Region, HoldsWhatCameToItsPlace) {
  Region source{kMessage};
  source.fill();
  Region sink{kMessage};
  copy_slot(sink, source, 1);
  copy_slot(sink, source, 2);
  EXPECT_TRUE(sink.holds(1, 2));
  EXPECT_TRUE(sink.holds(5, 2)) << "message 5 lies in slot 1, too";
  EXPECT_FALSE(sink.holds(1, 3)) << "slot 3 is missing";
  EXPECT_FALSE(sink.holds(1, 1)) << "slot 2 should be empty";
  EXPECT_FALSE(sink.holds(2, 2));
}

TEST(Region, MessagesGoRoundItsEnd) {
  Region source{kMessage};
  source.fill();
  Region sink{kMessage};
  copy_slot(sink, source, 3);
  copy_slot(sink, source, 0);
  EXPECT_TRUE(sink.holds(3, 2));
  EXPECT_FALSE(sink.holds(0, 2));
}

TEST(Region, MoreMessagesThanSlotsFillItAll) {
  Region sink{kMessage};
  sink.fill();
  EXPECT_TRUE(sink.holds(2, 4));
  EXPECT_TRUE(sink.holds(7, 1000));
  EXPECT_FALSE(sink.holds(0, 3));
}

TEST(Region, OneWrongByteIsSeen) {
  Region sink{kMessage};
  sink.fill();
  sink.data()[sink.size() - 1] ^= std::byte{1};
  EXPECT_FALSE(sink.holds(0, 4));
}

TEST(Region, OneSlotInTheNextOnesPlaceIsSeen) {
  Region source{kMessage};
  source.fill();
  Region sink{kMessage};
  std::memcpy(sink.data(), source.data() + kMessage, kMessage);
  EXPECT_FALSE(sink.holds(0, 1));
}

TEST(Region, SlotIsComparedAndClearedAlone) {
  Region sent{1000, 2};
  Region came{1000, 2};
  sent.fill();
  came.fill();
  EXPECT_EQ(came.slots(), 2U);
  came.clear_slot(0);
  EXPECT_FALSE(came.holds_slot_of(sent, 0));
  EXPECT_TRUE(came.holds_slot_of(sent, 1));
  came.data()[1999] ^= std::byte{1};
  EXPECT_FALSE(came.holds_slot_of(sent, 1));
}

TEST(Region, ClearedHoldsNothing) {
  Region region{kMessage};
  region.fill();
  region.clear();
  EXPECT_TRUE(region.holds(0, 0));
  EXPECT_FALSE(region.holds(0, 1));
}

TEST(Cursor, VisitsEachSlotAndBeginsAnew) {
  const Region region{kMessage};
  Cursor cursor{region};
  for (const uint64_t slot : {0, 1, 2, 3, 0, 1}) {
    EXPECT_EQ(cursor.offset(), slot * kMessage);
    cursor.advance();
  }
  EXPECT_EQ(cursor.sequence(), 6U);
}

}  // namespace
}  // namespace weft::bench
