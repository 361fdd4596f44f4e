#include "verbs/mapping.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace weft::verbs {
namespace {

constexpr size_t kPage = 4096;

// Pages with the rights given, one behind the other; 0 unmaps a page again.
class Pages {
 public:
  explicit Pages(std::initializer_list<int> rights) : size_(rights.size() * kPage) {
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::byte* p = base_;
    for (const int r : rights) {
      if (r < 0) {
        ::munmap(p, kPage);
      } else {
        ::mprotect(p, kPage, r);
      }
      p += kPage;
    }
  }
  ~Pages() { ::munmap(base_, size_); }
  const std::byte* at(size_t offset) const { return base_ + offset; }

 private:
  std::byte* base_;
  size_t size_;
};

constexpr int kRw = PROT_READ | PROT_WRITE;
constexpr int kR = PROT_READ;
constexpr int kUnmapped = -1;

// What is checked twice: with the kernel's query, and with the text that older kernels print.
// Returns the number of the first statement that does not hold, or 0.
int first_wrong() {
  int n = 0;
  const auto is = [&n](Mapping got, Mapping expected) {
    ++n;
    return got == expected;
  };
  const Pages p{kRw, kRw, kR, kRw, kUnmapped, kRw, PROT_NONE};
  if (!is(check_mapping(p.at(0), 1, true), Mapping::good)) return n;
  if (!is(check_mapping(p.at(0), 2 * kPage, true), Mapping::good)) return n;
  if (!is(check_mapping(p.at(100), kPage, true), Mapping::good)) return n;
  // From one mapping into the next, whose rights are others.
  if (!is(check_mapping(p.at(0), 4 * kPage, false), Mapping::good)) return n;
  if (!is(check_mapping(p.at(0), 4 * kPage, true), Mapping::read_only)) return n;
  if (!is(check_mapping(p.at(2 * kPage), 1, true), Mapping::read_only)) return n;
  if (!is(check_mapping(p.at(2 * kPage - 1), 2, true), Mapping::read_only)) return n;
  if (!is(check_mapping(p.at(2 * kPage - 1), 1, true), Mapping::good)) return n;
  // Into the hole, over it, and out of it.
  if (!is(check_mapping(p.at(4 * kPage), 1, false), Mapping::missing)) return n;
  if (!is(check_mapping(p.at(4 * kPage - 1), 2, false), Mapping::missing)) return n;
  if (!is(check_mapping(p.at(3 * kPage), 3 * kPage, true), Mapping::missing)) return n;
  if (!is(check_mapping(p.at(5 * kPage), kPage, true), Mapping::good)) return n;
  if (!is(check_mapping(p.at(5 * kPage - 1), 2, true), Mapping::missing)) return n;
  // Reserved, and not even readable.
  if (!is(check_mapping(p.at(6 * kPage), 1, false), Mapping::missing)) return n;
  // Nothing at all, the first page, the end of the address space.
  if (!is(check_mapping(nullptr, 0, true), Mapping::good)) return n;
  if (!is(check_mapping(p.at(4 * kPage), 0, true), Mapping::good)) return n;
  if (!is(check_mapping(nullptr, 1, false), Mapping::missing)) return n;
  if (!is(check_mapping(p.at(0), UINT64_MAX, false), Mapping::missing)) return n;
  if (!is(check_mapping(reinterpret_cast<const void*>(UINTPTR_MAX - 10), 5, false),
          Mapping::missing))
    return n;
  return 0;
}

TEST(CheckMapping, ByTheKernelsQuery) {
  EXPECT_EQ(first_wrong(), 0) << "the statement of this number";
}

// A kernel before 6.11, played by a filter that refuses this ioctl(2) to a child.
TEST(CheckMapping, ByTheTextOfOlderKernels) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Type 'f', number 17: the low half of the request.
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffff),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ('f' << 8) | 17, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 25),  // ENOTTY
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{.len = sizeof code / sizeof *code, .filter = code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      ::_exit(100);
    }
    ::_exit(first_wrong());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the statement of this number";
}

TEST(CheckMapping, TheStackAndTheProgram) {
  int local = 0;
  EXPECT_EQ(check_mapping(&local, sizeof local, true), Mapping::good);
  EXPECT_EQ(check_mapping(reinterpret_cast<const void*>(&first_wrong), 16, true),
            Mapping::read_only);
  static const char kText[] = "constant";
  EXPECT_EQ(check_mapping(kText, sizeof kText, false), Mapping::good);
}

}  // namespace
}  // namespace weft::verbs
