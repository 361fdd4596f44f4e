#include "base/fixed_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>

#include "base/random.h"

namespace weft {
namespace {

TEST(FixedRing, FirstInFirstOut) {
  FixedRing<std::string> ring{3};
  EXPECT_TRUE(ring.empty());
  ring.push_back("a");
  ring.push_back("b");
  EXPECT_FALSE(ring.full());
  ring.push_back("c");
  EXPECT_TRUE(ring.full());
  EXPECT_EQ(ring.front(), "a");
  EXPECT_EQ(ring.back(), "c");
  ring.pop_front();
  EXPECT_EQ(ring.front(), "b");
  EXPECT_EQ(ring[1], "c");
  EXPECT_EQ(ring.size(), 2U);
}

TEST(FixedRing, OneWithoutCapacityIsEmptyAndFull) {
  FixedRing<int> ring;
  EXPECT_TRUE(ring.empty());
  EXPECT_TRUE(ring.full());
}

TEST(FixedRing, BehavesLikeADequeWhileItGrowsAndWrapsAround) {
  SeededRandom random{7};
  FixedRing<uint64_t> ring{100};
  std::deque<uint64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    if (random.next() % 100 < (step / 1000 % 2 == 0 ? 60U : 40U) && !ring.full()) {
      model.push_back(random.next());
      ring.push_back(model.back());
    } else if (!model.empty() && random.next() % 4 == 0) {
      ring.pop_back();
      model.pop_back();
    } else if (!model.empty()) {
      ring.pop_front();
      model.pop_front();
    }
    if (step % 997 == 0) ring.trim();
    ASSERT_EQ(ring.size(), model.size());
    ASSERT_EQ(ring.full(), model.size() == 100);
    for (size_t i = 0; i < model.size(); ++i) ASSERT_EQ(ring[i], model[i]) << "step " << step;
  }
}

TEST(FixedRing, WhatWasTakenOutIsDestroyedAtOnce) {
  FixedRing<std::shared_ptr<int>> ring{4};
  auto held = std::make_shared<int>(1);
  ring.push_back(held);
  ring.push_back(nullptr);
  ring.pop_front();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace weft
