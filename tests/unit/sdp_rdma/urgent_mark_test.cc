#include "sdp/rdma/urgent_mark.h"

#include <gtest/gtest.h>

#include <vector>

#include "sdp/rdma/receive_queue.h"

namespace weft::sdp {
namespace {

TEST(UrgentMark, StopsAReadInFrontOfTheByte) {
  UrgentMark mark;
  EXPECT_EQ(mark.until(9), 9U);
  mark.came(3, std::byte{'u'});
  EXPECT_EQ(mark.until(9), 3U);
  EXPECT_EQ(mark.until(2), 2U);
  EXPECT_EQ(mark.readable(9), 9U);
  EXPECT_EQ(mark.counted(9), 3U);
  EXPECT_FALSE(mark.is_next());
  mark.taken(3);
  EXPECT_TRUE(mark.is_left_out());
  EXPECT_EQ(mark.readable(6), 5U);
  EXPECT_EQ(mark.counted(6), 0U);
}

TEST(UrgentMark, IsOverBehindTheByte) {
  UrgentMark mark;
  mark.came(1, std::byte{'u'});
  mark.taken(1);
  EXPECT_TRUE(mark.waits());
  mark.taken(1);
  EXPECT_FALSE(mark.waits());
  EXPECT_FALSE(mark.is_next());
  EXPECT_EQ(mark.until(4), 4U);
  EXPECT_EQ(mark.counted(4), 4U);
}

TEST(UrgentMark, StaysWhereItIsWhenTheByteWasRead) {
  UrgentMark mark;
  mark.came(2, std::byte{'u'});
  mark.read();
  EXPECT_FALSE(mark.waits());
  EXPECT_EQ(mark.until(5), 2U);
  mark.taken(2);
  EXPECT_TRUE(mark.is_left_out());
}

TEST(UrgentMark, InLineTheByteIsOneOfThem) {
  UrgentMark mark;
  mark.set_in_line(true);
  mark.came(2, std::byte{'u'});
  EXPECT_EQ(mark.counted(5), 5U);
  EXPECT_EQ(mark.until(5), 2U);
  mark.taken(2);
  EXPECT_TRUE(mark.is_next());
  EXPECT_FALSE(mark.is_left_out());
  EXPECT_EQ(mark.readable(3), 3U);
  EXPECT_EQ(mark.until(3), 3U);
}

TEST(UrgentMark, TheNewestCounts) {
  UrgentMark mark;
  mark.came(1, std::byte{'a'});
  mark.read();
  mark.came(4, std::byte{'b'});
  EXPECT_EQ(mark.count(), 2U);
  EXPECT_TRUE(mark.waits());
  EXPECT_EQ(mark.byte(), std::byte{'b'});
  EXPECT_EQ(mark.until(9), 4U);
}

TEST(ReceiveQueue, LooksAheadBehindWhatIsSkipped) {
  const std::vector<std::byte> first{std::byte{1}, std::byte{2}};
  const std::vector<std::byte> second{std::byte{3}, std::byte{4}, std::byte{5}};
  ReceiveQueue queue;
  queue.push(first, 0);
  queue.push(second, 1);
  std::vector<std::byte> seen(2);
  EXPECT_EQ(queue.peek(seen, 1), 2U);
  EXPECT_EQ(seen, (std::vector{std::byte{2}, std::byte{3}}));
  EXPECT_EQ(queue.peek(seen, 3), 2U);
  EXPECT_EQ(seen, (std::vector{std::byte{4}, std::byte{5}}));
  EXPECT_EQ(queue.bytes(), 5U);
}

}  // namespace
}  // namespace weft::sdp
