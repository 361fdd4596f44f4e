#include "base/earliest.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Earliest, WhereverItStands) {
  const Time first = Time::from_ns(1);
  const Time second = Time::from_ns(2);
  EXPECT_EQ(earliest(first, second), first);
  EXPECT_EQ(earliest(second, first), first);
  EXPECT_EQ(earliest(first, second, Time::never()), first);
  EXPECT_EQ(earliest(second, first, Time::never()), first);
  EXPECT_EQ(earliest(Time::never(), second, second, first), first);
  EXPECT_TRUE(earliest(Time::never(), Time::never()).is_never());
}

}  // namespace
}  // namespace weft
