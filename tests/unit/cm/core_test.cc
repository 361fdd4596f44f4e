#include "cm/core.h"

#include <gtest/gtest.h>

#include "cm/bring_up.h"

namespace weft::cm {
namespace {

// An adapter without it would connect no queue pair by its number.
TEST(Core, TheAdapterHasTheBringUpByNumber) {
  const auto a = adapter();
  ASSERT_TRUE(a.ok());
  EXPECT_NE(dynamic_cast<BringUpService*>((*a)->bring_up()), nullptr);
  const auto again = adapter();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *a) << "one for each process";
}

}  // namespace
}  // namespace weft::cm
