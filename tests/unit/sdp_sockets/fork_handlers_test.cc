#include "sdp/sockets/fork_handlers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::sdp {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> g_said;

// One test, for what is added stays for as long as the process.
TEST(ForkHandlers, AreCalledInTheOrderOfFork) {
  ASSERT_TRUE(ForkHandlers::add({.first = [] { g_said.emplace_back("first 1"); },
                                 .before = [] { g_said.emplace_back("before 1"); },
                                 .in_parent = [] { g_said.emplace_back("parent 1"); },
                                 .in_child = [] { g_said.emplace_back("child 1"); }}));
  ASSERT_TRUE(ForkHandlers::add({.in_child = [] { g_said.emplace_back("child 2"); }}));
  ASSERT_TRUE(ForkHandlers::add({.before = [] { g_said.emplace_back("before 3"); },
                                 .in_parent = [] { g_said.emplace_back("parent 3"); }}));
  {
    ForkHandlers::Fork fork;
    // It has not been called before the fork, so it is not behind it.
    ASSERT_TRUE(ForkHandlers::add({.in_parent = [] { g_said.emplace_back("parent 4"); }}));
    fork.over_in_parent();
  }
  // Who was added later may lock what somebody needs whom the first waits for.
  EXPECT_THAT(g_said, ElementsAre("first 1", "before 3", "before 1", "parent 1", "parent 3"));
  g_said.clear();
  {
    ForkHandlers::Fork fork;
    fork.over_in_child();
  }
  EXPECT_THAT(g_said, ElementsAre("first 1", "before 3", "before 1", "child 1", "child 2"));
  g_said.clear();
  const ForkHandlers::Of libcs = ForkHandlers::of_libc();
  libcs.before();
  libcs.in_parent();
  EXPECT_THAT(g_said,
              ElementsAre("first 1", "before 3", "before 1", "parent 1", "parent 3", "parent 4"));

  int more = 0;
  while (more < 1000 && ForkHandlers::add({})) ++more;
  EXPECT_EQ(more, 28);
}

}  // namespace
}  // namespace weft::sdp
