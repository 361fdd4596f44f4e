#include "sdp/loop/handlers.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <mutex>

#include "base/guarded.h"

namespace weft::sdp {
namespace {

volatile std::sig_atomic_t g_runs = 0;
volatile std::sig_atomic_t g_value = 0;
sigjmp_buf g_place;

void count(int /*signal*/) {
  g_runs = g_runs + 1;
}
void note_value(int /*signal*/, siginfo_t* info, void* /*context*/) {
  g_value = info->si_value.sival_int;
}
void jump(int /*signal*/) {
  siglongjmp(g_place, 1);
}

bool is_blocked(int signal) {
  sigset_t blocked;
  (void)::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

class AHandler : public ::testing::Test {
 protected:
  void SetUp() override { g_runs = 0; }
  void TearDown() override { (void)Handlers::set(SIGUSR1, SIG_DFL); }
  Mutex mutex;
};

TEST_F(AHandler, RunsAtOnceWithoutALock) {
  (void)Handlers::set(SIGUSR1, count);
  (void)::raise(SIGUSR1);
  EXPECT_EQ(g_runs, 1);
}

TEST_F(AHandler, WaitsForTheLastLockOfItsThread) {
  (void)Handlers::set(SIGUSR1, count);
  Mutex other;
  {
    const std::lock_guard first{mutex};
    {
      const std::lock_guard second{other};
      (void)::raise(SIGUSR1);
      (void)::raise(SIGUSR1);
    }
    EXPECT_EQ(g_runs, 0);
    errno = EINTR;
  }
  EXPECT_EQ(g_runs, 1) << "one that is pending already is not sent twice";
  EXPECT_EQ(errno, EINTR);
  EXPECT_FALSE(is_blocked(SIGUSR1));
}

TEST_F(AHandler, IsToldWhatWasSentWithTheSignal) {
  struct sigaction action {};
  action.sa_sigaction = note_value;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ASSERT_EQ(Handlers::set_action(SIGUSR1, &action, nullptr), 0);
  {
    const std::lock_guard holding{mutex};
    ASSERT_EQ(::sigqueue(::getpid(), SIGUSR1, sigval{.sival_int = 77}), 0);
  }
  EXPECT_EQ(g_value, 77);
}

TEST_F(AHandler, LeavesNoLockBehindWhenItJumps) {
  (void)Handlers::set(SIGUSR1, jump);
  if (sigsetjmp(g_place, 1) == 0) {
    const std::lock_guard holding{mutex};
    (void)::raise(SIGUSR1);
  }
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
  EXPECT_FALSE(is_blocked(SIGUSR1));
}

TEST_F(AHandler, IsSeenByTheProgramAsItSetIt) {
  struct sigaction action {};
  action.sa_handler = count;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  (void)sigaddset(&action.sa_mask, SIGUSR2);
  ASSERT_EQ(Handlers::set_action(SIGUSR1, &action, nullptr), 0);
  struct sigaction seen {};
  ASSERT_EQ(Handlers::set_action(SIGUSR1, nullptr, &seen), 0);
  EXPECT_EQ(seen.sa_handler, count);
  EXPECT_EQ(seen.sa_flags & (SA_RESTART | SA_SIGINFO), SA_RESTART);
  EXPECT_NE(seen.sa_flags & static_cast<int>(SA_RESETHAND), 0);
  EXPECT_EQ(sigismember(&seen.sa_mask, SIGUSR2), 1);
  EXPECT_EQ(Handlers::set(SIGUSR1, SIG_IGN), count);
  EXPECT_EQ(Handlers::set(SIGUSR1, SIG_DFL), SIG_IGN);
}

TEST_F(AHandler, ForOneTimeIsGoneBehindIt) {
  (void)Handlers::set_for_once(SIGUSR1, count);
  {
    const std::lock_guard holding{mutex};
    (void)::raise(SIGUSR1);
  }
  EXPECT_EQ(g_runs, 1);
  EXPECT_EQ(Handlers::set(SIGUSR1, SIG_DFL), SIG_DFL);
}

TEST_F(AHandler, InterruptsCallsWhereThatWasAskedFor) {
  (void)Handlers::set(SIGUSR1, count);
  struct sigaction seen {};
  ASSERT_EQ(Handlers::set_interrupts(SIGUSR1, true), 0);
  (void)Handlers::set(SIGUSR1, count);
  (void)Handlers::set_action(SIGUSR1, nullptr, &seen);
  EXPECT_EQ(seen.sa_flags & SA_RESTART, 0);
  ASSERT_EQ(Handlers::set_interrupts(SIGUSR1, false), 0);
  (void)Handlers::set_action(SIGUSR1, nullptr, &seen);
  EXPECT_EQ(seen.sa_flags & SA_RESTART, SA_RESTART);
}

// In a process of its own: the handler stays.
void reach_for_memory_that_is_gone() {
  (void)Handlers::set(SIGSEGV, count);
  Handlers::guard_memory();
  void* const gone = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char here[] = "bytes";
  const bool written = copy_guarded(gone, here, sizeof here);
  const bool read = copy_guarded(here, gone, sizeof here);
  const bool asked = g_runs != 0;
  (void)::raise(SIGSEGV);
  const bool ran = g_runs == 1;
  const bool behind = Handlers::set(SIGSEGV, SIG_DFL) == count;
  _exit(!written && !read && !asked && ran && behind ? 0 : 1);
}

TEST_F(AHandler, OfMemoryIsNotAskedInACall_AndStaysBehindIt) {
  EXPECT_EXIT(reach_for_memory_that_is_gone(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::sdp
