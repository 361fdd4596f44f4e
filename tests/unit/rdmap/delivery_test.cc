#include "rdmap/delivery.h"

#include <gtest/gtest.h>

namespace weft::rdmap {
namespace {

using Due = Delivery::Due;

TEST(Delivery, TheRunGrowsWithEachMessage) {
  Delivery d;
  EXPECT_EQ(d.run(), 0U);
  d.accepted(false);
  d.accepted(false);
  d.accepted(5, false);
  EXPECT_EQ(d.run(), 7U);
  EXPECT_EQ(d.due(), Due::nothing) << "nobody asked";
}

TEST(Delivery, AwMakesItDueAndSendingMakesItUndue) {
  Delivery d;
  d.accepted(true);
  EXPECT_EQ(d.due(), Due::soon);
  d.accepted(false);
  EXPECT_EQ(d.due(), Due::soon);
  d.sent();
  EXPECT_EQ(d.due(), Due::nothing);
  d.accepted(3, true);
  EXPECT_EQ(d.due(), Due::soon);
}

// spec/rdmap 4.5: the sender is told at once that a message waits, and when it got its receive,
// asked or not.
TEST(Delivery, WaitingIsSaidAtOnce) {
  Delivery d;
  d.waiting(true);
  EXPECT_TRUE(d.is_waiting());
  EXPECT_EQ(d.due(), Due::now);
  d.sent();
  d.accepted(false);
  d.waiting(false);
  EXPECT_FALSE(d.is_waiting());
  EXPECT_EQ(d.due(), Due::now);
}

TEST(Delivery, WhatIsUrgentStaysUrgent) {
  Delivery d;
  d.want(Due::now);
  d.accepted(true);
  EXPECT_EQ(d.due(), Due::now);
}

TEST(Delivery, UntoldIsWhatThePeerHasNotHeardOf) {
  Delivery d;
  EXPECT_FALSE(d.untold());
  d.accepted(false);
  EXPECT_TRUE(d.untold());
  d.sent();
  EXPECT_FALSE(d.untold());
}

}  // namespace
}  // namespace weft::rdmap
