#include "base/strong.h"

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <unordered_set>

namespace weft {
namespace {

using Apples = StrongNumber<struct ApplesTag, uint32_t>;
using Pears = StrongNumber<struct PearsTag, uint32_t>;

template <class A, class B>
concept Comparable = requires(A a, B b) {
  a == b;
}
|| requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Assignable = std::assignable_from<A&, B> || std::constructible_from<A, B>;
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

static_assert(Comparable<Apples, Apples>);
static_assert(!Comparable<Apples, Pears>);
static_assert(!Comparable<Apples, uint32_t>);
static_assert(!Assignable<Apples, Pears>);
static_assert(!std::assignable_from<Apples&, uint32_t>);
static_assert(std::constructible_from<Apples, uint32_t>);
static_assert(!std::convertible_to<uint32_t, Apples>, "only on demand");
static_assert(!std::convertible_to<Apples, uint32_t>, "only through value()");
static_assert(!Addable<Apples, Apples>);
static_assert(!Addable<Apples, uint32_t>);
static_assert(sizeof(Apples) == sizeof(uint32_t));
static_assert(std::is_trivially_copyable_v<Apples>);

TEST(StrongNumber, ComparesWithItsOwnKind) {
  EXPECT_EQ(Apples{3}, Apples{3});
  EXPECT_NE(Apples{3}, Apples{4});
  EXPECT_LT(Apples{3}, Apples{4});
  EXPECT_EQ(Apples{}.value(), 0U);
}

TEST(StrongNumber, CanBeAKey) {
  std::unordered_set<Apples> set;
  for (uint32_t i = 0; i < 100; ++i) set.insert(Apples{i % 10});
  EXPECT_EQ(set.size(), 10U);
  EXPECT_TRUE(set.contains(Apples{9}));
  EXPECT_FALSE(set.contains(Apples{10}));
}

}  // namespace
}  // namespace weft
