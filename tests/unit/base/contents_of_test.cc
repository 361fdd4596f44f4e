#include "base/contents_of.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace weft {
namespace {

TEST(ContentsOf, AllOfAFileWhoseSizeNobodyKnows) {
  const std::string status = contents_of("/proc/self/status");
  EXPECT_NE(status.find("\nPid:\t" + std::to_string(::getpid()) + "\n"), std::string::npos);
  EXPECT_TRUE(status.ends_with('\n'));
}

TEST(ContentsOf, OfNoFileItIsEmpty) {
  EXPECT_EQ(contents_of("/proc/self/no-such-file"), "");
}

}  // namespace
}  // namespace weft
