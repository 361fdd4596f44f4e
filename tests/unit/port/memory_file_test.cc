#include "port/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::port {
namespace {

TEST(MemoryFile, IsItsOwnersAloneAndCanBeSealed) {
  const Fd file = memory_file("test");
  ASSERT_TRUE(file.valid());
  struct stat s {};
  ASSERT_EQ(::fstat(file.get(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600U);
  EXPECT_EQ(s.st_uid, ::geteuid());
  EXPECT_EQ(s.st_size, 0);
  EXPECT_EQ(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
}

TEST(MemoryFile, TheLargestFileIsWhatTheLimitSays) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(largest_file(), before.rlim_cur);
  const rlimit less{before.rlim_max == RLIM_INFINITY ? 12'345'678 : before.rlim_max / 2,
                    before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
  EXPECT_EQ(largest_file(), less.rlim_cur);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

}  // namespace
}  // namespace weft::port
