#include "shared/agreement.h"

#include <gtest/gtest.h>

#include "tests/unit/shared/connection.h"

namespace weft::shared {
namespace {

TEST(Agreement, BothEndsOnOneHostMay) {
  const Connection c;
  EXPECT_TRUE(outlook(c.active).may_share());
  EXPECT_TRUE(outlook(c.passive).may_share());
}

TEST(Agreement, WhatIsDisturbedOnPurposeStaysWithTcp) {
  Connection c;
  FaultSpec faults;
  faults.split = 0.5;
  c.active.inject(faults);
  EXPECT_EQ(outlook(c.active).against, stats::SameHostRefusal::disturbed);
  EXPECT_FALSE(outlook(c.active).may_share());
  EXPECT_TRUE(outlook(c.passive).may_share());
}

uint64_t counted(const stats::EngineCounters& counters, stats::SameHostRefusal why) {
  return counters.same_host_refused[static_cast<size_t>(why)].value();
}

TEST(Agreement, AnOfferThatIsNotMadeHasAReason) {
  using stats::SameHostRefusal;
  stats::EngineCounters counters;
  const Outlook willing{.peer_is_here = true, .against = {}};
  count_unoffered(willing, true, counters);
  EXPECT_EQ(counted(counters, SameHostRefusal::by_peer), 1U);
  count_unoffered(willing, false, counters);
  EXPECT_EQ(counted(counters, SameHostRefusal::not_weft), 1U);
  count_unoffered({.peer_is_here = true, .against = SameHostRefusal::off}, true, counters);
  EXPECT_EQ(counted(counters, SameHostRefusal::off), 1U);
  // A peer of another host could not.
  stats::EngineCounters elsewhere;
  count_unoffered({.peer_is_here = false, .against = SameHostRefusal::off}, false, elsewhere);
  for (size_t i = 0; i < stats::kSameHostRefusals; ++i) {
    EXPECT_EQ(elsewhere.same_host_refused[i].value(), 0U) << i;
  }
}

TEST(Agreement, AConnectionThatIsGoneMayNot) {
  port::TcpStream none;
  EXPECT_FALSE(outlook(none).may_share());
}

TEST(Agreement, BothSocketsAreInOneNamespace) {
  const Connection c;
  stats::EngineCounters counters;
  auto o = offer(c.passive, counters);
  ASSERT_TRUE(o);
  EXPECT_NE(o->offer.network_namespace, 0U);
  EXPECT_TRUE(take(o->offer, c.active, counters));
  EXPECT_TRUE(o->segment.joined());
}

TEST(Agreement, TheAnswerIsOneByte) {
  for (const bool takes : {true, false}) {
    const Connection c;
    stats::EngineCounters counters;
    auto o = offer(c.passive, counters);
    ASSERT_TRUE(o);
    if (!takes) o->offer.network_namespace ^= 1;
    EXPECT_EQ(take(o->offer, c.active, counters).has_value(), takes);
    pollfd p{.fd = c.passive.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 20'000), 1);
    std::array<std::byte, 16> got{};
    const IoVec one{got.data(), got.size()};
    EXPECT_EQ(c.passive.receive({&one, 1}).bytes, 1U);
    EXPECT_EQ(got[0], takes ? std::byte{1} : std::byte{0});
  }
}

}  // namespace
}  // namespace weft::shared
