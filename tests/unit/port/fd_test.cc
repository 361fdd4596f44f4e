#include "port/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace weft::port {
namespace {

bool open_fd(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}
Fd make() {
  return Fd{::open("/dev/null", O_RDWR)};
}

TEST(Fd, ClosesWhatItOwns) {
  int number = -1;
  {
    const Fd fd = make();
    ASSERT_TRUE(fd.valid());
    number = fd.get();
  }
  EXPECT_FALSE(open_fd(number));
}

TEST(Fd, OwnershipMoves) {
  Fd a = make();
  const int first = a.get();
  Fd b{std::move(a)};
  EXPECT_FALSE(a.valid());  // NOLINT(bugprone-use-after-move): what is left of it is the question
  EXPECT_EQ(b.get(), first);
  Fd c = make();
  const int second = c.get();
  c = std::move(b);
  EXPECT_EQ(c.get(), first);
  EXPECT_FALSE(open_fd(second));
  Fd& same = c;
  c = std::move(same);
  EXPECT_TRUE(open_fd(first)) << "moved onto itself";
}

TEST(Fd, ReleaseGivesItAway) {
  Fd fd = make();
  const int number = fd.release();
  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(open_fd(number));
  ::close(number);
  fd.reset();
  fd.reset();
}

// spec/abi 5: select(2) needs the numbers below 1024.
TEST(Raise, MovesAbove1023WhereTheLimitAllows) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur <= 1100) GTEST_SKIP() << "the limit on open files is " << limit.rlim_cur;
  Fd low = make();
  const int before = low.get();
  const Fd high = raise(std::move(low));
  EXPECT_GE(high.get(), 1024);
  EXPECT_FALSE(open_fd(before));
  EXPECT_NE(::fcntl(high.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Raise, LeavesItWhereItIsOtherwise) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit tight = limit;
  tight.rlim_cur = 512;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  Fd low = make();
  const int before = low.get();
  const Fd same = raise(std::move(low));
  EXPECT_EQ(same.get(), before);
  EXPECT_TRUE(open_fd(before));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(raise(Fd{}).valid());
}

}  // namespace
}  // namespace weft::port
