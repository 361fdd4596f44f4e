#include "base/put_off_free.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace weft {
namespace {

std::vector<void*> freed_ones;
std::vector<void*> freed_arrays;
void free_one(void* block) {
  freed_ones.push_back(block);
}
void free_array(void* block) {
  freed_arrays.push_back(block);
}

struct PutOffFreeTest : testing::Test {
  PutOffFreeTest() {
    freed_ones.clear();
    freed_arrays.clear();
  }
  std::array<char, 3000> blocks{};  // of a byte
};

TEST_F(PutOffFreeTest, NothingIsKeptOutside) {
  EXPECT_FALSE(PutOffFree::keep(&blocks[0], free_one));
  EXPECT_FALSE(PutOffFree::keep(&blocks[1], free_array));
  PutOffFree::begin();
  PutOffFree::end();
  EXPECT_TRUE(freed_ones.empty());
}

TEST_F(PutOffFreeTest, WhatIsKeptIsFreedOnceAtTheEnd) {
  PutOffFree::begin();
  EXPECT_TRUE(PutOffFree::keep(&blocks[0], free_one));
  EXPECT_TRUE(PutOffFree::keep(&blocks[1], free_array));
  PutOffFree::begin();
  EXPECT_TRUE(PutOffFree::keep(&blocks[2], free_one));
  PutOffFree::end();
  EXPECT_TRUE(freed_ones.empty()) << "the outer scope goes on";
  PutOffFree::end();
  EXPECT_EQ(freed_ones, (std::vector<void*>{&blocks[0], &blocks[2]}));
  EXPECT_EQ(freed_arrays, std::vector<void*>{&blocks[1]});
  PutOffFree::begin();
  PutOffFree::end();
  EXPECT_EQ(freed_ones.size(), 2U);
}

// More than fit into a page and another one, and where pages were used before.
TEST_F(PutOffFreeTest, ThousandsAreFreedOnce) {
  for (int round = 0; round < 3; ++round) {
    freed_ones.clear();
    PutOffFree::begin();
    for (char& block : blocks) ASSERT_TRUE(PutOffFree::keep(&block, free_one));
    PutOffFree::end();
    EXPECT_EQ(freed_ones.size(), blocks.size());
    EXPECT_EQ(std::set<void*>(freed_ones.begin(), freed_ones.end()).size(), blocks.size());
  }
}

TEST_F(PutOffFreeTest, EachThreadHasItsOwn) {
  PutOffFree::begin();
  std::thread{[&] { EXPECT_FALSE(PutOffFree::keep(&blocks[0], free_one)); }}.join();
  PutOffFree::end();
}

// A program's `free` deregisters memory, holds an engine for that, and frees something there.
void* left = nullptr;
void free_and_hold(void* block) {
  freed_ones.push_back(block);
  if (left == nullptr) return;
  PutOffFree::begin();
  EXPECT_TRUE(PutOffFree::keep(std::exchange(left, nullptr), free_and_hold));
  PutOffFree::end();
}

TEST_F(PutOffFreeTest, WhoFreesMayHoldAgain) {
  left = &blocks[2];
  PutOffFree::begin();
  PutOffFree::keep(&blocks[0], free_and_hold);
  PutOffFree::keep(&blocks[1], free_and_hold);
  PutOffFree::end();
  EXPECT_EQ(freed_ones.size(), 3U);
  EXPECT_EQ(std::set<void*>(freed_ones.begin(), freed_ones.end()).size(), 3U);
}

}  // namespace
}  // namespace weft
