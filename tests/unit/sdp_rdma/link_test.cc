#include "sdp/rdma/link.h"

#include <cerrno>

#include "tests/unit/sdp_rdma/two_ends.h"

namespace weft::sdp {
namespace {

using LinkTest = testing::TwoEnds;

TEST_F(LinkTest, SaysWhatTheProtocolHasToSay) {
  one.link.send_controls();
  EXPECT_TRUE(one.posted.empty());
  one.link.connection().greet();
  one.link.send_controls();
  ASSERT_EQ(one.posted.size(), 1U);
  (void)one.carry_one(other);
  EXPECT_TRUE(other.link.connection().heard());
}

TEST_F(LinkTest, CountsMessagesAndCredits) {
  const uint32_t credits = one.link.connection().credits();
  one.fill(100);
  one.out.send();
  EXPECT_EQ(one.link.traffic().messages_sent, 1U);
  EXPECT_EQ(one.link.traffic().bytes_sent, 100U);
  EXPECT_EQ(one.link.traffic().credits, credits - 1);
  (void)one.carry_one(other);
  EXPECT_EQ(other.link.traffic().messages_received, 1U);
  EXPECT_EQ(other.link.traffic().bytes_received, 100U);
}

TEST_F(LinkTest, SaysNothingMoreOnceItIsBroken) {
  one.link.connection().greet();
  one.link.fail(EPIPE);
  one.link.send_controls();
  EXPECT_TRUE(one.posted.empty());
  other.link.connection().greet();
  other.link.queue_pair().set_down();
  other.link.send_controls();
  EXPECT_TRUE(other.posted.empty());
}

TEST_F(LinkTest, SaysNothingThatHasNoPlaceInTheSendQueue) {
  one.link.connection().greet();
  while (one.link.queue_pair().has_place()) (void)one.link.queue_pair().send({});
  const size_t before = one.posted.size();
  one.link.send_controls();
  EXPECT_EQ(one.posted.size(), before);
  one.link.queue_pair().completed(QueuePair::Work::data, true);
  one.link.send_controls();
  EXPECT_EQ(one.posted.size(), before + 1);
}

TEST_F(LinkTest, TheFirstErrorCounts) {
  EXPECT_FALSE(one.link.broken());
  one.link.fail(EPIPE);
  one.link.fail(ECONNRESET);
  EXPECT_TRUE(one.link.broken());
  EXPECT_EQ(one.link.error(), EPIPE);
}

TEST_F(LinkTest, TellsTheErrorOnce) {
  one.link.fail(ECONNRESET);
  EXPECT_EQ(one.link.take_error(), ECONNRESET);
  EXPECT_EQ(one.link.take_error(), 0);
  EXPECT_EQ(one.link.error(), ECONNRESET);
  one.link.leave_error();
  EXPECT_EQ(one.link.untold_error(), ECONNRESET);
  EXPECT_EQ(one.link.take_error(), ECONNRESET);
}

TEST_F(LinkTest, TellsThePeerThatItAborts) {
  one.link.abort();
  one.link.abort();
  EXPECT_EQ(one.link.error(), ECONNRESET);
  ASSERT_EQ(one.posted.size(), 1U) << "once";
  (void)one.carry_one(other);
  EXPECT_EQ(other.link.error(), ECONNRESET);
}

TEST_F(LinkTest, IsAbortedWithoutAWordWhereTheQueuePairIsDown) {
  one.link.queue_pair().set_down();
  one.link.abort();
  EXPECT_TRUE(one.posted.empty());
  EXPECT_EQ(one.link.error(), ECONNRESET);
}

}  // namespace
}  // namespace weft::sdp
