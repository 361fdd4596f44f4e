#include "verbs/number_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <vector>

namespace weft::verbs {
namespace {

using namespace std::chrono_literals;

constexpr Time at(Duration since_start) {
  return Time::from_ns(1'000'000) + since_start;
}

TEST(NumberPool, APortHasItsNumbersInOrder) {
  NumberPool pool;
  EXPECT_FALSE(pool.take(at(0s)));
  pool.add_port(5000);
  for (unsigned i = 1; i <= 254; ++i) {
    EXPECT_EQ(pool.take(at(0s)), make_qpn(5000, static_cast<uint8_t>(i)));
  }
  EXPECT_FALSE(pool.take(at(1h)));
}

// spec/addressing 2.3: least recently used first, never within 2 s of release.
TEST(NumberPool, WhatAPeerMayKnowRests) {
  NumberPool pool;
  pool.add_port(5000);
  std::vector<Qpn> used;
  while (const auto n = pool.take(at(0s))) used.push_back(*n);
  pool.give_back(used[9], true, at(1s));
  pool.give_back(used[3], true, at(2s));
  EXPECT_EQ(pool.resting(), 2U);
  EXPECT_FALSE(pool.take(at(2999ms)));
  EXPECT_EQ(pool.take(at(3s)), used[9]);
  EXPECT_FALSE(pool.take(at(3s)));
  EXPECT_EQ(pool.take_resting(), used[3]) << "where there is no other way";
  EXPECT_FALSE(pool.take_resting());
}

TEST(NumberPool, WhatNobodyKnowsIsThereAtOnceAndLast) {
  NumberPool pool;
  pool.add_port(5000);
  const auto first = pool.take(at(0s));
  ASSERT_TRUE(first);
  pool.give_back(*first, false, at(0s));
  std::set<Qpn> others;
  for (unsigned i = 1; i < 254; ++i) {
    const auto n = pool.take(at(0s));
    ASSERT_TRUE(n);
    EXPECT_NE(*n, *first);
    EXPECT_TRUE(others.insert(*n).second);
  }
  EXPECT_EQ(pool.take(at(0s)), first);
  EXPECT_FALSE(pool.take(at(0s)));
}

// Each is in one place, however often they come and go, and however many ports there are.
TEST(NumberPool, NoneIsLostAndNoneIsThereTwice) {
  NumberPool pool;
  std::set<Qpn> out;
  Time now = at(0s);
  uint64_t draw = 1;
  for (uint16_t port = 6000; port < 6003; ++port) {
    pool.add_port(port);
    for (int i = 0; i < 5000; ++i) {
      draw = draw * 6364136223846793005ULL + 1442695040888963407ULL;
      now = now + Duration{(draw >> 40) % 20'000'000};
      if ((draw >> 60) % 2 == 0 && !out.empty()) {
        const auto back = std::next(out.begin(), static_cast<ptrdiff_t>((draw >> 20) % out.size()));
        pool.give_back(*back, (draw >> 50) % 2 == 0, now);
        out.erase(back);
      } else if (const auto n = pool.take(now)) {
        EXPECT_TRUE(out.insert(*n).second);
      }
    }
  }
  for (const Qpn n : out) pool.give_back(n, true, now);
  std::set<Qpn> all;
  while (const auto n = pool.take(now + 2s)) EXPECT_TRUE(all.insert(*n).second);
  EXPECT_EQ(all.size(), 3 * 254U);
}

}  // namespace
}  // namespace weft::verbs
