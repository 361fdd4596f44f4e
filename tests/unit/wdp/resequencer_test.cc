#include "wdp/resequencer.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;

// Numbers that arrive, as UcReceivePath makes them arrive, and the order in which they are let
// through.
struct Order {
  explicit Order(std::optional<Psn> first = Psn{0}) : window(first), order(first) {}

  void arrive(uint32_t psn, bool untagged = true, size_t bytes = 10) {
    const bool in_order = order.in_order(Psn{psn});
    window.mark(Psn{psn});
    if (untagged && in_order) {
      through.push_back(psn);
    } else if (untagged) {
      order.hold({.psn = Psn{psn}, .since = now, .payload = std::vector<std::byte>(bytes)});
    }
    order.arrived(Psn{psn}, window, now);
    drain();
  }
  void later(Duration d) {
    now = now + d;
    if (now < order.deadline()) return;
    order.tick(window, now);
    drain();
  }
  void drain() {
    while (const auto h = order.take_due(window)) through.push_back(h->psn.value());
  }

  Time now = Time::from_ns(1'000'000);
  PsnWindow window;
  Resequencer order;
  std::vector<uint32_t> through;
};
using Psns = std::vector<uint32_t>;

TEST(Resequencer, WhatIsInOrderGoesThrough) {
  Order o;
  for (uint32_t i = 0; i < 10; ++i) o.arrive(i);
  EXPECT_EQ(o.through, (Psns{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(o.order.deadline().is_never());
}

TEST(Resequencer, WhatOvertakesWaitsForTheOvertaken) {
  Order o;
  for (const uint32_t psn : {0U, 3U, 1U, 5U, 2U, 4U}) o.arrive(psn);
  EXPECT_EQ(o.through, (Psns{0, 1, 2, 3, 4, 5}));
}

TEST(Resequencer, ItKnowsWhatMayStillCome) {
  Order o;
  EXPECT_FALSE(o.order.misses(Psn{0xffff'ffff}, o.window));
  EXPECT_TRUE(o.order.misses(Psn{0}, o.window));
  o.arrive(0);
  o.arrive(2);
  EXPECT_FALSE(o.order.misses(Psn{0}, o.window));
  EXPECT_TRUE(o.order.misses(Psn{2}, o.window));
  o.arrive(1);
  EXPECT_FALSE(o.order.misses(Psn{2}, o.window));
  EXPECT_TRUE(o.order.misses(Psn{3}, o.window));
  // What was given up does not come any more.
  o.arrive(4);
  o.later(1ms);
  EXPECT_EQ(o.through.back(), 4U);
  EXPECT_FALSE(o.order.misses(Psn{4}, o.window));
}

TEST(Resequencer, TaggedOnesFillGapsToo) {
  Order o;
  o.arrive(1);
  EXPECT_TRUE(o.through.empty());
  o.arrive(0, false);
  EXPECT_EQ(o.through, (Psns{1}));
}

TEST(Resequencer, AGapIsGivenUpAfter250us) {
  Order o;
  o.arrive(0);
  o.arrive(2);
  EXPECT_EQ(o.order.deadline(), o.now + 250us);
  o.later(249us);
  EXPECT_EQ(o.through, (Psns{0}));
  o.later(1us);
  EXPECT_EQ(o.through, (Psns{0, 2}));
  o.arrive(3);
  EXPECT_EQ(o.through, (Psns{0, 2, 3}));
  // Late, and let through for whoever can use it.
  o.arrive(1);
  EXPECT_EQ(o.through, (Psns{0, 2, 3, 1}));
}

TEST(Resequencer, EachGapHasItsOwnTime) {
  Order o;
  o.arrive(1);
  o.later(200us);
  o.arrive(3);
  o.later(50us);
  EXPECT_EQ(o.through, (Psns{1}));
  o.arrive(2);
  EXPECT_EQ(o.through, (Psns{1, 2, 3}));
}

TEST(Resequencer, WhatComesBehindAnOldGapDoesNotWaitForIt) {
  Order o;
  o.arrive(0, false);
  o.arrive(2, false);  // 1 is lost, and nothing waits for it
  for (uint32_t psn = 3; psn < 40; ++psn) {
    o.later(10us);
    o.arrive(psn, false);
  }
  o.arrive(40);
  EXPECT_EQ(o.through, (Psns{40}));
}

TEST(Resequencer, WhatComesBehindAYoungGapWaits) {
  Order o;
  o.arrive(0, false);
  o.later(1ms);
  o.arrive(2, false);
  o.later(200us);
  o.arrive(3);
  EXPECT_TRUE(o.through.empty());
  o.arrive(1, false);
  EXPECT_EQ(o.through, (Psns{3}));
}

TEST(Resequencer, At129ThingsTheFirstGapIsGivenUp) {
  Order o;
  for (uint32_t psn = 1; psn <= kMostHeld; ++psn) o.arrive(psn);
  EXPECT_TRUE(o.through.empty());
  o.arrive(kMostHeld + 2);
  // All up to the next gap, in order.
  ASSERT_EQ(o.through.size(), kMostHeld);
  for (uint32_t i = 0; i < kMostHeld; ++i) EXPECT_EQ(o.through[i], i + 1);
  EXPECT_EQ(o.order.holding(), 1U);
}

TEST(Resequencer, At1MiBTheFirstGapIsGivenUp) {
  Order o;
  for (uint32_t psn = 1; psn <= 16; ++psn) o.arrive(psn, true, 65536);
  EXPECT_TRUE(o.through.empty());
  o.arrive(18, true, 1);
  EXPECT_EQ(o.through.size(), 16U);
}

TEST(Resequencer, WithoutAnAnnouncementTheFirstBegins) {
  Order o{std::nullopt};
  o.arrive(700);
  o.arrive(702);
  o.arrive(701);
  EXPECT_EQ(o.through, (Psns{700, 701, 702}));
}

TEST(Resequencer, NumbersWrap) {
  Order o{Psn{0xfffffffeU}};
  for (const uint32_t psn : {1U, 0xffffffffU, 0U, 0xfffffffeU}) o.arrive(psn);
  EXPECT_EQ(o.through, (Psns{0xfffffffeU, 0xffffffffU, 0, 1}));
}

TEST(Resequencer, GivingUpAllLetsAllThrough) {
  Order o;
  for (const uint32_t psn : {2U, 9U, 5U}) o.arrive(psn);
  o.order.give_up_all();
  o.drain();
  EXPECT_EQ(o.through, (Psns{2, 5, 9}));
}

}  // namespace
}  // namespace weft::wdp
