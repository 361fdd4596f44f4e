#include "base/random.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <set>

namespace weft {
namespace {

TEST(SeededRandom, IsSplitMix64) {
  SeededRandom r(1234567);
  EXPECT_EQ(r.next(), 6457827717110365317U);
  EXPECT_EQ(r.next(), 3203168211198807973U);
  EXPECT_EQ(r.next(), 9817491932198370423U);
  EXPECT_EQ(r.next(), 4593380528125082431U);
  EXPECT_EQ(r.next(), 16408922859458223821U);
}

TEST(SeededRandom, RepeatsItselfFromItsSeedOnly) {
  SeededRandom a(7), b(7), c(8);
  for (int i = 0; i < 100; ++i) {
    const uint64_t v = a.next();
    EXPECT_EQ(v, b.next());
    EXPECT_NE(v, c.next());
  }
}

TEST(SystemRandom, EveryBitVaries) {
  SystemRandom r;
  uint64_t ones = 0;
  uint64_t zeros = 0;
  std::set<uint64_t> values;
  for (int i = 0; i < 256; ++i) {
    const uint64_t v = r.next();
    ones |= v;
    zeros |= ~v;
    values.insert(v);
  }
  EXPECT_EQ(ones, UINT64_MAX);
  EXPECT_EQ(zeros, UINT64_MAX);
  EXPECT_EQ(values.size(), 256U);
}

// A sandbox's filter: getrandom(2) is not permitted from here on.
bool forbid_getrandom() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(SystemRandomDeathTest, SaysWhyItCannotGoOn) {
  if (prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "this kernel has no seccomp";
  EXPECT_DEATH(
      {
        if (forbid_getrandom()) SystemRandom{}.next();
      },
      "getrandom\\(2\\) failed with errno 1; allow that system call");
}

}  // namespace
}  // namespace weft
