#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace weft {
namespace {

enum class Error { odd, negative };

Result<int, Error> half(int n) {
  if (n < 0) return fail(Error::negative);
  if (n % 2 != 0) return fail(Error::odd);
  return n / 2;
}

Result<Ok, std::string> complain(bool yes) {
  if (yes) return fail("no such queue pair");
  return Ok{};
}

constexpr Result<int, Error> kConstant = 5;
static_assert(kConstant.ok() && *kConstant == 5);

TEST(Result, HoldsAValue) {
  auto r = half(10);
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(static_cast<bool>(r));
  EXPECT_EQ(*r, 5);
  *r = 6;
  EXPECT_EQ(*r, 6);
}

TEST(Result, HoldsTheErrorThatKeptItFromBeing) {
  EXPECT_FALSE(half(-2).ok());
  EXPECT_EQ(half(-2).error(), Error::negative);
  EXPECT_EQ(half(3).error(), Error::odd);
  EXPECT_FALSE(static_cast<bool>(half(3)));
}

TEST(Result, OkStandsForNothingToSay) {
  EXPECT_TRUE(complain(false).ok());
  EXPECT_EQ(complain(true).error(), "no such queue pair");
}

TEST(Result, ValueAndErrorMayBeOfOneType) {
  using Same = Result<int, int>;
  EXPECT_TRUE(Same{1}.ok());
  EXPECT_FALSE(Same{fail(1)}.ok());
  EXPECT_EQ(Same{fail(2)}.error(), 2);
}

TEST(Result, TakesValuesThatOnlyMove) {
  Result<std::unique_ptr<std::string>, Error> r = std::make_unique<std::string>("moved");
  ASSERT_TRUE(r.ok());
  EXPECT_EQ((*r)->size(), 5U);
  const std::unique_ptr<std::string> out = std::move(*r);
  EXPECT_EQ(*out, "moved");
}

TEST(Result, ArrowReachesIntoTheValue) {
  struct Pair {
    int first;
    int second;
  };
  Result<Pair, Error> r = Pair{3, 4};
  r->first = 7;
  const auto& c = r;
  EXPECT_EQ(c->first + c->second, 11);
}

}  // namespace
}  // namespace weft
