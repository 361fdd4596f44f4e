// The adapter and its engines. Its memory and its ports have tests of their own.

#include "verbs/adapter.h"

#include <algorithm>

#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

TEST(AdapterTest, IsOneForTheProcess) {
  Adapter& first = adapter();
  EXPECT_EQ(&adapter(), &first);
  EXPECT_EQ(Adapter::existing(), &first);
}

TEST(AdapterTest, EnginesComeByTurnsUnlessAThreadPrefersOne) {
  // Round after round in one order.
  std::vector<engine::Engine*> seen{&adapter().next_engine()};
  for (engine::Engine* next; (next = &adapter().next_engine()) != seen.front();) {
    ASSERT_EQ(std::count(seen.begin(), seen.end(), next), 0);
    seen.push_back(next);
  }
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(&adapter().next_engine(), seen[i]);
  engine::Engine& last = *seen.back();
  Adapter::prefer(&last);
  EXPECT_EQ(&adapter().next_engine(), &last);
  EXPECT_EQ(&adapter().next_engine(), &last);
  Adapter::prefer(nullptr);
}

}  // namespace
}  // namespace weft::verbs
