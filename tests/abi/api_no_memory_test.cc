// No memory is an errno to a program in C, and never an exception.
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/abi/api_fixture.h"
#include "tests/support/sanitizer.h"

namespace weft::test {
namespace {

// From now on this process gets next to no memory.
bool limit_memory() {
  std::ifstream statm{"/proc/self/statm"};
  rlim_t pages = 0;
  statm >> pages;
  const rlimit limit{.rlim_cur = pages * static_cast<rlim_t>(getpagesize()) + (1U << 20),
                     .rlim_max = RLIM_INFINITY};
  return pages > 0 && setrlimit(RLIMIT_AS, &limit) == 0;
}

// Does making objects end in ENOMEM?
template <class Make>
bool runs_out(Make&& make) {
  std::vector<decltype(make())> all;
  for (int i = 0; i < 1000; ++i) {
    errno = 0;
    auto one = make();
    if (one == nullptr) return errno == ENOMEM;
    all.push_back(std::move(one));
  }
  return false;
}

// Which check failed, or 0.
int create_without_memory() {
  const Owned<ibv_context> context = open_device();
  const Owned<ibv_pd> pd{ibv_alloc_pd(context.get())};
  const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 4, nullptr, nullptr, 0)};
  if (pd == nullptr || cq == nullptr) return 1;
  ibv_qp_init_attr qp = rc_attributes(cq.get());
  qp.cap.max_send_wr = qp.cap.max_recv_wr = 16384;
  qp.cap.max_send_sge = qp.cap.max_recv_sge = 30;
  ibv_srq_init_attr srq{};
  srq.attr = {.max_wr = 16384, .max_sge = 30, .srq_limit = 0};
  if (!limit_memory()) return 2;
  // What earlier tests have freed is used up first.
  if (!runs_out([&] { return Owned<ibv_qp>{ibv_create_qp(pd.get(), &qp)}; })) return 3;
  if (!runs_out([&] { return Owned<ibv_srq>{ibv_create_srq(pd.get(), &srq)}; })) return 4;
  // Small ones still come.
  qp = rc_attributes(cq.get());
  const Owned<ibv_qp> small{ibv_create_qp(pd.get(), &qp)};
  return small == nullptr ? 5 : 0;
}

TEST(NoMemory, IsAnErrno) {
#ifdef WEFT_SANITIZER
  GTEST_SKIP() << "sanitizers need more address space than this test leaves";
#endif
  const pid_t pid = fork();
  if (pid == 0) _exit(create_without_memory());
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace weft::test
