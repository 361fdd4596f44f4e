// Who has a connection that a thread waited for: the thread, or the loop that gave it up.
#include "sdp/sockets/awaited.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace weft::sdp {
namespace {

TEST(Awaited, WhatWasTakenIsNotGivenUp) {
  Awaited awaited;
  awaited.put(nullptr, ECONNREFUSED);
  EXPECT_EQ(awaited.take().second, ECONNREFUSED);
  EXPECT_FALSE(awaited.give_up());
}

TEST(Awaited, WhatWasGivenUpIsNotTaken) {
  Awaited awaited;
  awaited.put(nullptr, 0);
  EXPECT_TRUE(awaited.give_up());
  EXPECT_FALSE(awaited.give_up());
  EXPECT_EQ(awaited.take().second, ETIMEDOUT);
}

}  // namespace
}  // namespace weft::sdp
