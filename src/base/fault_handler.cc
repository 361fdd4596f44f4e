#include "base/fault_handler.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "base/guarded.h"
#include "base/spinlock.h"

namespace weft {
namespace {

// In front of a handler of the program's: whether it stays so at the signal's delivery is the
// kernel's to see to, which has these flags from the program's action.
constexpr int kKernelsFlags = SA_ONSTACK | SA_NODEFER | SA_RESTART;

// What the program wants done about one of the two signals.
struct Disposition {
  struct sigaction action {};  // as the program set it; under g_lock
  // The same for the handler, which may interrupt the lock's holder.
  std::atomic<uintptr_t> handler{0};
  std::atomic<bool> once{false};  // SA_RESETHAND
};
Disposition g_segv;
Disposition g_bus;
Spinlock g_lock;
std::atomic<bool> g_installed{false};
FaultHandling g_handling;  // before that is set

Disposition* disposition_of(int signal) {
  if (signal == SIGSEGV) return &g_segv;
  return signal == SIGBUS ? &g_bus : nullptr;
}

uintptr_t number(void (*handler)(int)) {
  return reinterpret_cast<uintptr_t>(handler);
}

// No handler may run while the lock is held, for it may ask for the lock.
class Locked {
 public:
  Locked() {
    sigset_t all;
    (void)sigfillset(&all);
    (void)::pthread_sigmask(SIG_BLOCK, &all, &before_);
    g_lock.lock();
  }
  ~Locked() {
    g_lock.unlock();
    (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  sigset_t before_;
};

// --- when a signal comes

// How often the program's handler was asked about one place without being of help. A collector or a
// checkpointer protects memory for a moment, and its handler lifts that; then the access goes on,
// and nobody hears of it. Another fault at the same place may follow because the program has
// protected it anew, which takes it some microseconds at least, or because the handler did nothing.
struct Asked {
  // In a row, with so little time in between, or with hardly any.
  static constexpr int kMost = 100;
  static constexpr int kMostAtOnce = 4;
  static constexpr int64_t kSoon = 1'000'000;  // ns
  static constexpr int64_t kAtOnce = 5'000;

  uintptr_t address;
  int64_t returned;
  int times;
  int at_once;

  bool may_be_again(uintptr_t where) {
    const int64_t since = now() - returned;
    if (where != address || since > kSoon) {
      *this = {.address = where, .returned = 0, .times = 0, .at_once = 0};
    } else {
      ++times;
      at_once = since > kAtOnce ? 0 : at_once + 1;
    }
    return times < kMost && at_once < kMostAtOnce;
  }
  void came_back() { returned = now(); }

  static int64_t now() {
    timespec t{};
    (void)::clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }
};
// Of each thread. A handler must find it allocated.
thread_local Asked g_asked __attribute__((tls_model("initial-exec"))){};

// The process is to end as if nobody had caught the signal: it comes once more, with all that was
// told of it, when this handler returns to where it was interrupted.
void take_default(int signal, siginfo_t* info) {
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  (void)g_handling.set_action(signal, &none, nullptr);
  (void)::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::syscall(SYS_gettid), signal, info);
}

void call_program(int signal, siginfo_t* info, void* context, Disposition& d) {
  const uintptr_t handler = d.handler.load(std::memory_order_acquire);
  const bool by_access = info->si_code > 0;
  // An access that faults cannot be ignored (sigaction(2)): the kernel ends the process.
  if (handler == number(SIG_IGN) && !by_access) return;
  if (handler == number(SIG_IGN) || handler == number(SIG_DFL)) return take_default(signal, info);
  if (d.once.load(std::memory_order_relaxed)) d.handler.store(number(SIG_DFL));
  // As the kernel does it: with three arguments, also one that wants the first alone.
  reinterpret_cast<void (*)(int, siginfo_t*, void*)>(handler)(signal, info, context);
}

bool program_may_lift(const siginfo_t& info, const Disposition& d) {
  if (!g_handling.program_lifts) return false;
  const uintptr_t handler = d.handler.load(std::memory_order_acquire);
  // What a handler for one time only does is to report a crash.
  if (handler == number(SIG_DFL) || handler == number(SIG_IGN) || d.once.load()) return false;
  return info.si_signo == SIGSEGV && info.si_code == SEGV_ACCERR;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  Disposition& d = *disposition_of(signal);
  const bool ours = info->si_code > 0 && in_guarded(context);
  const bool ask = ours && program_may_lift(*info, d) &&
                   g_asked.may_be_again(reinterpret_cast<uintptr_t>(info->si_addr));
  if (!ours || ask) {
    call_program(signal, info, context, d);
    if (ask) g_asked.came_back();
    errno = error;
    return;
  }
  errno = error;
  (void)::pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
  leave_guarded(context);
}

// --- actions

void remember(Disposition& d, const struct sigaction& action) {
  d.action = action;
  d.once.store((action.sa_flags & SA_RESETHAND) != 0, std::memory_order_relaxed);
  d.handler.store(number(action.sa_handler), std::memory_order_release);
}

// Its mask and the stack that it wants are those of the program's handler.
int put_in_front(int signal, const Disposition& d) {
  struct sigaction ours = d.action;
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | (d.action.sa_flags & kKernelsFlags);
  return g_handling.set_action(signal, &ours, nullptr);
}

}  // namespace

void handle_faults(const FaultHandling& handling) {
  const Locked guard;
  if (g_installed.load(std::memory_order_relaxed)) return;
  g_handling = handling;
  for (const int signal : {SIGSEGV, SIGBUS}) {
    Disposition& d = *disposition_of(signal);
    struct sigaction found {};
    if (g_handling.set_action(signal, nullptr, &found) != 0) continue;
    remember(d, found);
    (void)put_in_front(signal, d);
  }
  g_installed.store(true, std::memory_order_release);
}

std::optional<int> keep_behind_faults(int signal, const struct sigaction* action,
                                      struct sigaction* old) {
  Disposition* const d = disposition_of(signal);
  if (d == nullptr || !g_installed.load(std::memory_order_acquire)) return std::nullopt;
  const Locked guard;
  struct sigaction before = d->action;
  // One for one time only that has had its time.
  if (d->handler.load(std::memory_order_acquire) == number(SIG_DFL)) before.sa_handler = SIG_DFL;
  if (action != nullptr) {
    remember(*d, *action);
    if (put_in_front(signal, *d) != 0) return -1;
  }
  if (old != nullptr) *old = before;
  return 0;
}

}  // namespace weft
