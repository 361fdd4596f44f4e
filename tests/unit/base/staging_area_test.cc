#include "base/staging_area.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace weft {
namespace {

TEST(StagingArea, BeginsInTheMiddleOfAPageAndHoldsWhatItSays) {
  std::vector<StagingArea> areas;
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{4096}, size_t{5000}, size_t{262144}}) {
    const StagingArea& area = areas.emplace_back(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(area.data()) % 4096, 2048U) << bytes;
    std::memset(area.data(), 1, bytes);
  }
}

}  // namespace
}  // namespace weft
