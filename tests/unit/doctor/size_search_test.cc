#include "doctor/size_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::doctor {
namespace {

constexpr uint32_t kSmall = 92;
constexpr uint32_t kBurst = 100'000;
constexpr unsigned kTries = 3;

// Bursts until the search is over. `arrives(size, times)`: the fate of a size that is sent so
// often.
template <class F>
unsigned bursts(SizeSearch& search, F&& arrives) {
  unsigned count = 0;
  std::map<uint32_t, unsigned> sent;
  for (;;) {
    const std::vector<uint32_t> sizes = search.next();
    if (sizes.empty()) return count;
    if (++count > 1000) return count;
    for (const uint32_t size : sizes) {
      if (arrives(size, ++sent[size])) search.arrived(size);
    }
    search.burst_over();
  }
}

TEST(SizeSearch, FindsEveryLimitToTheByte) {
  for (const uint32_t limit : {93U, 576U, 1279U, 1280U, 1499U, 1500U, 1501U, 8999U, 9000U}) {
    SizeSearch search(kSmall, 9000, kTries, kBurst);
    const unsigned count = bursts(search, [&](uint32_t size, unsigned) { return size <= limit; });
    EXPECT_EQ(search.passes(), limit);
    EXPECT_LE(count, 15U) << limit;
  }
}

TEST(SizeSearch, OneBurstWhereAllPasses) {
  SizeSearch search(kSmall, 9000, kTries, kBurst);
  EXPECT_EQ(bursts(search, [](uint32_t, unsigned) { return true; }), 1U);
  EXPECT_EQ(search.passes(), 9000U);
}

TEST(SizeSearch, WhatIsLostOnceIsTriedAgain) {
  SizeSearch search(kSmall, 9000, kTries, kBurst);
  bursts(search, [](uint32_t size, unsigned times) { return size <= 1500 && times > 1; });
  EXPECT_EQ(search.passes(), 1500U);
}

TEST(SizeSearch, LargeDatagramsInSmallBursts) {
  SizeSearch search(kSmall, 65'535, kTries, kBurst);
  const auto& sizes = search.next();
  EXPECT_GE(sizes.size(), 2U);
  EXPECT_LE(std::accumulate(sizes.begin(), sizes.end(), 0U), kBurst);
  EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
  bursts(search, [](uint32_t size, unsigned) { return size <= 40'001; });
  EXPECT_EQ(search.passes(), 40'001U);
}

TEST(SizeSearch, WhatTheInterfaceRefusesIsTooLarge) {
  SizeSearch search(kSmall, 9000, kTries, kBurst);
  const std::vector<uint32_t> sizes = search.next();
  for (const uint32_t size : sizes) {
    if (size > 4000) search.refused(size);
  }
  const auto& rest = search.next();
  ASSERT_FALSE(rest.empty());
  EXPECT_LE(rest.front(), 4000U + 9000U / 16);
  bursts(search, [](uint32_t size, unsigned) { return size <= 4000; });
  EXPECT_EQ(search.passes(), 4000U);
}

TEST(SizeSearch, NothingToLookFor) {
  SizeSearch search(1500, 1500, kTries, kBurst);
  EXPECT_TRUE(search.next().empty());
  SizeSearch less(1500, 576, kTries, kBurst);
  EXPECT_TRUE(less.next().empty());
  EXPECT_EQ(less.passes(), 1500U);
}

}  // namespace
}  // namespace weft::doctor
