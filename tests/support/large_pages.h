// A kernel with pages of 64 KiB, as some of Arm's and Power's are: for a process of its own, and
// for one source of a test program, since what it asks for the size of pages is defined here.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

namespace weft::test {

inline constexpr int kLargePage = 65'536;
inline bool pages_are_large = false;

// From here on mmap(2) takes no offset within a large page, for ever. False: no seccomp filters
// here.
inline bool have_large_pages() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[5])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kLargePage - 1, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 22),  // EINVAL
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = sizeof code / sizeof *code, .filter = code};
  pages_are_large = true;
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// In a child with such pages. `body` gives the number of its first wrong statement, or 0.
inline void expect_with_large_pages(int (*body)()) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(have_large_pages() ? body() : 100);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the statement of this number";
}

}  // namespace weft::test

// In the place of the C library's.
extern "C" int getpagesize() noexcept {
  return weft::test::pages_are_large ? weft::test::kLargePage
                                     : static_cast<int>(::getauxval(AT_PAGESZ));
}
