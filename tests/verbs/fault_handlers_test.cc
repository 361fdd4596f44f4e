// Handlers for SIGSEGV and SIGBUS of a program that uses the device (docs/design/06): weft's own
// stands in front of them and must not be noticed. Each test in a process of its own.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr size_t kMemory = 1 << 16;

uint8_t* g_memory = nullptr;
// Right above it: the kernel gives out the highest addresses first, and what is mapped later comes
// to stand here when both are unmapped.
constexpr size_t kDecoy = 16 << 20;
std::atomic<int> g_calls{0};  // handlers run in any thread; free of locks
std::atomic<int> g_as_wanted{0};

struct Device {
  Device() : qp(make_qp(a, cq.get())), mr(a.reg(memory(), kMemory)) {
    connect(qp.get(), own_gid(a), peer.get(), own_gid(a));
  }
  static uint8_t* memory() {
    g_memory = static_cast<uint8_t*>(mmap(nullptr, kMemory + kDecoy, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return g_memory;
  }
  // 'x' to the beginning of the memory.
  void write() {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {reinterpret_cast<uintptr_t>(g_memory), mr->rkey};
    check_errno(post_send(qp.get(), wr, {sge(text.data(), text.size(), text_mr.get())}),
                "ibv_post_send");
  }
  ibv_wc_status status() {
    const auto done = collect(cq.get(), 1);
    check(done.size() == 1, "a completion");
    return done[0].status;
  }

  const Adapter a;
  const CqPtr cq = a.cq(64);
  const QpPtr peer = make_qp(a, cq.get());
  const QpPtr qp;
  std::vector<uint8_t> text = std::vector<uint8_t>(64, 'x');
  const MrPtr text_mr = a.reg(text.data(), text.size());
  const MrPtr mr;
};

void lift(int, siginfo_t* info, void* context) {
  g_calls = g_calls + 1;
  const auto* at = static_cast<uint8_t*>(info->si_addr);
  g_as_wanted = at >= g_memory && at < g_memory + kMemory && context != nullptr ? 1 : 0;
  mprotect(g_memory, kMemory, PROT_READ | PROT_WRITE);
}
void count(int) {
  g_calls = g_calls + 1;
}
void leave(int, siginfo_t* info, void*) {
  _exit(info->si_addr == reinterpret_cast<void*>(0x18) ? 42 : 43);
}

void install(void (*handler)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  check(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
}
// Not a test's, nor a sanitizer's.
void install_none() {
  (void)signal(SIGSEGV, SIG_DFL);
  (void)signal(SIGBUS, SIG_DFL);
}
void fault() {
  asm volatile("" ::: "memory");
  *reinterpret_cast<volatile int*>(uintptr_t{0x18}) = 1;  // NOLINT: that is what it is for
}

class FaultHandlers : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  template <class Body>
  static void ends_well(Body body) {
    EXPECT_EXIT(with({}, body), ::testing::ExitedWithCode(0), "");
  }
};

// As a collector's write barrier does it.
void protect_and_write(Device& d) {
  check(mprotect(g_memory, kMemory, PROT_READ) == 0, "mprotect");
  d.write();
  check(d.status() == IBV_WC_SUCCESS, "the Write");
  check(g_calls == 1 && g_as_wanted == 1 && g_memory[0] == 'x', "the handler");
}

TEST_F(FaultHandlers, lift_a_protection_when_installed_before) {
  ends_well([] {
    install(lift);
    Device d;
    protect_and_write(d);
  });
}
TEST_F(FaultHandlers, lift_a_protection_when_installed_later) {
  ends_well([] {
    Device d;
    install(lift);
    protect_and_write(d);
  });
}
TEST_F(FaultHandlers, lift_a_protection_again_and_again) {
  ends_well([] {
    Device d;
    install(lift);
    for (int i = 0; i < 50; ++i) {
      g_calls = 0;
      g_memory[0] = 0;
      protect_and_write(d);
    }
  });
}
// The program does not call: the helper thread writes.
TEST_F(FaultHandlers, run_in_the_helper_thread) {
  ends_well([] {
    Device d;
    install(lift);
    check(mprotect(g_memory, kMemory, PROT_READ) == 0, "mprotect");
    d.write();
    while (*static_cast<volatile uint8_t*>(g_memory) != 'x') sched_yield();
    check(g_calls == 1 && d.status() == IBV_WC_SUCCESS, "the handler");
  });
}
// How often depends on how long the machine takes from one fault to the next; there is an end to
// it.
TEST_F(FaultHandlers, that_lift_nothing_are_not_asked_for_ever) {
  ends_well([] {
    Device d;
    (void)signal(SIGSEGV, count);
    check(mprotect(g_memory, kMemory, PROT_READ) == 0, "mprotect");
    d.write();
    check(d.status() == IBV_WC_REM_ACCESS_ERR, "the Write");
    check(g_calls >= 1, "the handler");
  });
}
TEST_F(FaultHandlers, are_not_asked_where_nothing_is_mapped) {
  ends_well([] {
    Device d;
    (void)signal(SIGSEGV, count);
    check(munmap(g_memory, kMemory + kDecoy) == 0, "munmap");
    d.write();
    const ibv_wc_status seen = d.status();
    check(seen == IBV_WC_REM_ACCESS_ERR, ibv_wc_status_str(seen));
    check(g_calls == 0, "the handler");
  });
}

// --- faults of the program's own

TEST_F(FaultHandlers, hear_of_the_programs_own_faults) {
  for (const bool before : {false, true}) {
    EXPECT_EXIT(with({},
                     [before] {
                       if (before) install(leave);
                       const Device d;
                       if (!before) install(leave);
                       fault();
                     }),
                ::testing::ExitedWithCode(42), "")
        << before;
  }
}
TEST_F(FaultHandlers, where_there_is_none_the_process_is_killed) {
  EXPECT_EXIT(with({},
                   [] {
                     install_none();
                     const Device d;
                     fault();
                   }),
              ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(with({},
                   [] {
                     install_none();
                     const Device d;
                     kill(getpid(), SIGBUS);
                     pause();
                   }),
              ::testing::KilledBySignal(SIGBUS), "");
}
TEST_F(FaultHandlers, ignoring_them_is_for_what_others_send) {
  ends_well([] {
    const Device d;
    (void)signal(SIGSEGV, SIG_IGN);
    raise(SIGSEGV);
  });
  EXPECT_EXIT(with({},
                   [] {
                     const Device d;
                     (void)signal(SIGSEGV, SIG_IGN);
                     fault();
                   }),
              ::testing::KilledBySignal(SIGSEGV), "");
}
TEST_F(FaultHandlers, for_one_time_only_are_called_once) {
  EXPECT_EXIT(with({},
                   [] {
                     const Device d;
                     struct sigaction action {};
                     action.sa_handler = count;
                     action.sa_flags = static_cast<int>(SA_RESETHAND);
                     check(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
                     raise(SIGSEGV);
                     check(g_calls == 1, "the handler");
                     check(sigaction(SIGSEGV, nullptr, &action) == 0, "sigaction");
                     check(action.sa_handler == SIG_DFL, "it is gone");
                     raise(SIGSEGV);
                   }),
              ::testing::KilledBySignal(SIGSEGV), "");
}
TEST_F(FaultHandlers, are_told_to_who_asks) {
  ends_well([] {
    struct sigaction action {};
    struct sigaction old {};
    action.sa_handler = count;
    action.sa_flags = SA_NODEFER;
    sigaddset(&action.sa_mask, SIGUSR1);
    check(sigaction(SIGBUS, &action, nullptr) == 0, "before");
    const Device d;
    check(sigaction(SIGBUS, nullptr, &old) == 0 && old.sa_handler == count, "the program's own");
    check((old.sa_flags & SA_NODEFER) != 0 && sigismember(&old.sa_mask, SIGUSR1) == 1, "all of it");
    check(signal(SIGBUS, SIG_IGN) == count, "the one before");
    check(signal(SIGBUS, SIG_DFL) == SIG_IGN, "and before that");
    check(signal(SIGUSR2, count) == SIG_DFL && signal(SIGUSR2, SIG_DFL) == count, "others");
    errno = 0;
    check(sigaction(SIGKILL, &action, nullptr) == -1 && errno == EINVAL, "no signal to catch");
  });
}
// What the kernel does for a handler it does for the program's.
void on_its_stack(int, siginfo_t*, void*) {
  stack_t stack{};
  sigset_t blocked;
  sigaltstack(nullptr, &stack);
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  g_as_wanted = (stack.ss_flags & SS_ONSTACK) != 0 && sigismember(&blocked, SIGUSR1) == 1 ? 1 : 0;
}
TEST_F(FaultHandlers, have_their_stack_and_their_mask) {
  ends_well([] {
    const Device d;
    static char room[1 << 16];
    const stack_t stack{.ss_sp = room, .ss_flags = 0, .ss_size = sizeof room};
    check(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
    struct sigaction action {};
    action.sa_sigaction = on_its_stack;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaddset(&action.sa_mask, SIGUSR1);
    check(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
    raise(SIGSEGV);
    check(g_as_wanted == 1, "the handler");
  });
}
TEST_F(FaultHandlers, are_in_a_child_as_they_were) {
  ends_well([] {
    const Device d;
    (void)signal(SIGSEGV, count);
    const pid_t child = fork();
    if (child == 0) {
      raise(SIGSEGV);
      if (g_calls != 1) _exit(1);
      install_none();
      fault();
      _exit(2);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child, "waitpid");
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "the child");
  });
}

}  // namespace
}  // namespace weft::test
