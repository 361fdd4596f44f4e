#include "sdp/loop/own_descriptors.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include "sdp/loop/file.h"

namespace weft::sdp {
namespace {

class OwnDescriptorsTest : public testing::Test {
 protected:
  void SetUp() override { OwnDescriptors::forget_all(); }
  void TearDown() override { OwnDescriptors::forget_all(); }
};

TEST_F(OwnDescriptorsTest, NextIsTheLowestFromThere) {
  EXPECT_EQ(OwnDescriptors::next(0), OwnDescriptors::kMost);
  for (const int fd : {5, 63, 64, 1000, static_cast<int>(OwnDescriptors::kMost) - 1}) {
    OwnDescriptors::add(fd);
    EXPECT_TRUE(OwnDescriptors::has(fd));
  }
  EXPECT_EQ(OwnDescriptors::next(0), 5U);
  EXPECT_EQ(OwnDescriptors::next(5), 5U);
  EXPECT_EQ(OwnDescriptors::next(6), 63U);
  EXPECT_EQ(OwnDescriptors::next(64), 64U);
  EXPECT_EQ(OwnDescriptors::next(65), 1000U);
  EXPECT_EQ(OwnDescriptors::next(1001), OwnDescriptors::kMost - 1);
  EXPECT_EQ(OwnDescriptors::next(~0U), OwnDescriptors::kMost);
}

TEST_F(OwnDescriptorsTest, WhatIsNoNumberOfTheTableIsNotKnown) {
  for (const int fd : {-1, static_cast<int>(OwnDescriptors::kMost)}) {
    OwnDescriptors::add(fd);
    EXPECT_FALSE(OwnDescriptors::has(fd));
    OwnDescriptors::drop(fd);
  }
  EXPECT_EQ(OwnDescriptors::next(0), OwnDescriptors::kMost);
}

TEST_F(OwnDescriptorsTest, DropLeavesItsNeighbours) {
  for (const int fd : {7, 8, 9}) OwnDescriptors::add(fd);
  OwnDescriptors::drop(8);
  OwnDescriptors::drop(8);
  EXPECT_TRUE(OwnDescriptors::has(7));
  EXPECT_FALSE(OwnDescriptors::has(8));
  EXPECT_TRUE(OwnDescriptors::has(9));
}

TEST_F(OwnDescriptorsTest, AFileOutOfTheWayIsOneUntilItCloses) {
  File file{::eventfd(0, EFD_CLOEXEC)};
  EXPECT_FALSE(OwnDescriptors::has(file.get()));
  file = out_of_the_way(std::move(file));
  const int number = file.get();
  EXPECT_TRUE(OwnDescriptors::has(number));
  file.reset();
  EXPECT_FALSE(OwnDescriptors::has(number));
}

}  // namespace
}  // namespace weft::sdp
