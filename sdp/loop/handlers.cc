#include "sdp/loop/handlers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/fault_handler.h"

namespace weft::sdp {
namespace {

using Full = void (*)(int, siginfo_t*, void*);
using SetAction = int (*)(int, const struct sigaction*, struct sigaction*);

// What of an action the kernel is not told as it is.
constexpr int kOwn = SA_SIGINFO | static_cast<int>(SA_RESETHAND);

// The program's last handler of a signal. It stays where the action becomes the default: a child of
// vfork() does that in this memory, and its actions are its own.
struct Kept {
  std::atomic<Full> handler{nullptr};
  std::atomic<int> flags{0};
};
std::array<Kept, NSIG> g_kept;
std::array<std::atomic<bool>, NSIG> g_interrupts;

// Signals that come when the calling thread has no lock any more.
thread_local sigset_t t_signals __attribute__((tls_model("initial-exec"))) = {};

int real_action(int signal, const struct sigaction* action, struct sigaction* old) {
  static const auto function = reinterpret_cast<SetAction>(::dlsym(RTLD_NEXT, "sigaction"));
  return function(signal, action, old);
}

bool waits_for_locks(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT:
    case SIGKILL:
    case SIGSTOP:
      return false;
    default:
      return signal > 0 && signal < NSIG;
  }
}

bool is_handler(const struct sigaction& action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

Kept& kept_of(int signal) {
  return g_kept[static_cast<size_t>(signal)];
}

// It may wrap.
std::sig_atomic_t next(std::sig_atomic_t n) {
  return static_cast<std::sig_atomic_t>(static_cast<unsigned>(n) + 1);
}

// With the signal blocked it comes when it is not any more. False: it is lost then.
bool send_again(int signal, siginfo_t* info) {
  const long thread = ::syscall(SYS_gettid);
  const long process = ::syscall(SYS_getpid);
  return ::syscall(SYS_rt_tgsigqueueinfo, process, thread, signal, info) == 0 ||
         ::syscall(SYS_tgkill, process, thread, signal) == 0;
}

}  // namespace

// The mask that is found when the handler returns says what is blocked then.
void Handlers::on_signal(int signal, siginfo_t* info, void* context) {
  if (t_held > 0 || t_waiting != 0) {
    const int error = errno;
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, signal);
    (void)::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    const bool waits = send_again(signal, info);
    if (waits) {
      (void)sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, signal);
      (void)sigaddset(&t_signals, signal);
      t_waiting = 1;
    }
    errno = error;
    if (waits) return;
  }
  const Kept& kept = kept_of(signal);
  t_ran = next(t_ran);
  if ((kept.flags & SA_RESTART) == 0) t_interrupted = next(t_interrupted);
  if ((kept.flags & static_cast<int>(SA_RESETHAND)) != 0) {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    (void)real_action(signal, &none, nullptr);
  }
  kept.handler.load()(signal, info, context);
}

// All at once: a handler that has one of the others in its sa_mask is not to see it run meanwhile.
void Handlers::run_waiting() {
  const int error = errno;
  sigset_t all;
  sigset_t blocked;
  (void)sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &blocked);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&t_signals, signal) == 1) (void)sigdelset(&blocked, signal);
  }
  (void)sigemptyset(&t_signals);
  t_waiting = 0;
  (void)::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  errno = error;
}

int Handlers::set_action(int signal, const struct sigaction* action, struct sigaction* old) {
  if (const auto outcome = keep_behind_faults(signal, action, old)) return *outcome;
  if (!waits_for_locks(signal)) return real_action(signal, action, old);
  Kept& kept = kept_of(signal);
  const Full last = kept.handler;
  const int last_flags = kept.flags;
  struct sigaction in_front {};
  // A function of libc's that is not in front may have given the program on_signal() for the last
  // handler: it stands for what is kept.
  if (action != nullptr && is_handler(*action) && action->sa_sigaction == on_signal) {
    in_front = *action;
    in_front.sa_sigaction = last;
    in_front.sa_flags = (action->sa_flags & ~kOwn) | (last_flags & kOwn);
    return last != nullptr ? set_action(signal, &in_front, old) : real_action(signal, action, old);
  }
  if (action != nullptr && is_handler(*action)) {
    in_front = *action;
    in_front.sa_sigaction = on_signal;
    in_front.sa_flags = (action->sa_flags & ~kOwn) | SA_SIGINFO;
    kept.flags = action->sa_flags & (kOwn | SA_RESTART);
    kept.handler = action->sa_sigaction;
    action = &in_front;
  }
  const int status = real_action(signal, action, old);
  if (status == 0 && old != nullptr && old->sa_sigaction == on_signal) {
    old->sa_sigaction = last;
    old->sa_flags = (old->sa_flags & ~kOwn) | (last_flags & kOwn);
  }
  return status;
}

void Handlers::guard_memory() {
  handle_faults({.set_action = real_action, .program_lifts = false});
}

namespace {

Handlers::Simple install(int signal, Handlers::Simple handler, int flags, bool blocks_itself) {
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  (void)sigemptyset(&action.sa_mask);
  if (blocks_itself && sigaddset(&action.sa_mask, signal) != 0) return SIG_ERR;
  return Handlers::set_action(signal, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

}  // namespace

Handlers::Simple Handlers::set(int signal, Simple handler) {
  const bool interrupts = waits_for_locks(signal) && g_interrupts[static_cast<size_t>(signal)];
  return install(signal, handler, interrupts ? 0 : SA_RESTART, true);
}

Handlers::Simple Handlers::set_for_once(int signal, Simple handler) {
  return install(signal, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER, false);
}

int Handlers::set_interrupts(int signal, bool does) {
  struct sigaction action {};
  if (set_action(signal, nullptr, &action) != 0) return -1;
  if (waits_for_locks(signal)) g_interrupts[static_cast<size_t>(signal)] = does;
  action.sa_flags = does ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  return set_action(signal, &action, nullptr);
}

}  // namespace weft::sdp
