#include "drive/post_burst.h"

#include <gtest/gtest.h>

namespace weft::drive {
namespace {

TEST(PostBurst, BeginsWithTheSecondPostSinceAPoll) {
  PostBurst burst;
  for (uint64_t polls = 0; polls < 4; ++polls) {
    EXPECT_FALSE(burst.posted(polls));
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(burst.posted(polls)) << i;
  }
}

}  // namespace
}  // namespace weft::drive
