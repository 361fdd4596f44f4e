#include "drive/post_burst.h"

#include <gtest/gtest.h>

namespace weft::drive {
namespace {

TEST(PostBurst, ManyPostsWithoutAPollAreABurst) {
  PostBurst burst;
  for (uint64_t polls = 1; polls < 4; ++polls) {
    for (uint32_t i = 0; i < PostBurst::kAlone; ++i) EXPECT_FALSE(burst.posted(polls)) << i;
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(burst.posted(polls)) << i;
  }
}

}  // namespace
}  // namespace weft::drive
