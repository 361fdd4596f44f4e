// What programs get of it is in tests/verbs.

#include "verbs/null_memory.h"

#include <gtest/gtest.h>

#include "tests/abi/in_child.h"

namespace weft::verbs {
namespace {

TEST(NullMemory, ZerosStayWhateverIsWritten) {
  std::byte* const base = NullMemory::make();
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(NullMemory::make(), base);
  EXPECT_TRUE(NullMemory::is(base));
  EXPECT_FALSE(NullMemory::is(nullptr));
  EXPECT_FALSE(NullMemory::is(base + 1));
  std::byte* const sink = NullMemory::place(true);
  const std::byte* const zeros = NullMemory::place(false);
  for (const uint64_t at : {uint64_t{0}, uint64_t{3} << 20, NullMemory::kSize - 1}) {
    sink[at] = std::byte{0x5a};
    EXPECT_EQ(zeros[at], std::byte{0}) << at;
  }
}

// In which another thread was, that is not there to come out.
TEST(NullMemory, AChildOfForkGetsIt) {
  EXPECT_EQ(test::in_children_beside([] { (void)NullMemory::make(); }), 0);
}

}  // namespace
}  // namespace weft::verbs
