#include "rdmap/coverage.h"

#include <gtest/gtest.h>

namespace weft::rdmap {
namespace {

TEST(Coverage, SignaledRequestsAskAndOthersBeforeTheQueueIsFull) {
  Coverage c{true, true, 8};
  EXPECT_TRUE(c.asks(true, 0));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_FALSE(c.asks(false, 0)) << i;
    c.sent_message(false);
  }
  EXPECT_TRUE(c.unasked());
  EXPECT_TRUE(c.asks(false, 0)) << "half of the queue is uncovered";
  c.sent_message(true);
  EXPECT_FALSE(c.unasked());
  EXPECT_EQ(c.asked(), 4U);
  EXPECT_FALSE(c.asks(false, 0)) << "the peer was asked";
}

TEST(Coverage, ManyBytesAskAsWell) {
  Coverage c{true, true, 1000};
  c.sent_payload(kSendCredit / 2 - 1);
  EXPECT_FALSE(c.asks(false, 0));
  c.sent_payload(1);
  EXPECT_TRUE(c.asks(false, 0));
  c.sent_message(true);
  EXPECT_FALSE(c.asks(false, 0));
}

TEST(Coverage, SendsNeedCredit) {
  for (const bool awaited : {true, false}) {
    Coverage c{true, awaited, 1000};
    constexpr uint32_t kHalf = kSendCredit / 2;
    EXPECT_TRUE(c.has_credit(kSendCredit + 1)) << "one alone may be larger";
    EXPECT_TRUE(c.asks(false, kHalf)) << "the credit counts, whatever completes a request";
    c.sent_message(true, kHalf);
    EXPECT_TRUE(c.has_credit(kHalf));
    EXPECT_FALSE(c.has_credit(kHalf + 1));
    EXPECT_TRUE(c.cover(1));
    EXPECT_TRUE(c.has_credit(kHalf + 1));
    EXPECT_FALSE(c.cover(1)) << "it was covered";
    EXPECT_EQ(c.covered(), 1U);
  }
}

TEST(Coverage, APlainPeerIsNotAsked) {
  Coverage c{false, false, 2};
  EXPECT_FALSE(c.asks(true, kSendCredit));
  c.sent_message(false, kSendCredit);
  EXPECT_FALSE(c.unasked());
  EXPECT_TRUE(c.has_credit(kSendCredit));
}

}  // namespace
}  // namespace weft::rdmap
