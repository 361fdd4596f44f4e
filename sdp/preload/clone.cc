// syscall(2), and processes that are made behind libc's back: by it, by clone(2) or _Fork(3). One
// that has memory of its own is a child as of fork(2). One that shares the memory (CLONE_VM) is a
// thread, or as of vfork(2), and nothing is done here. One that ends by it, or executes another
// program, does as by libc.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include "base/guarded.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/descriptors.h"
#include "sdp/preload/exec.h"
#include "sdp/preload/left_open.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/fork_handlers.h"
#include "sdp/sockets/last_bytes.h"
#include "sdp/sockets/library.h"
#include "sdp/sockets/table.h"

using weft::sdp::ForkHandlers;
using weft::sdp::is_program;
using weft::sdp::Library;
using weft::sdp::Table;

namespace {

// libc's syscall(2) has as many, whatever the call needs: they are passed on as they are.
using SystemCall = long(long, long, long, long, long, long, long);

constinit std::atomic<SystemCall*> g_next{nullptr};

[[gnu::noinline]] SystemCall* find_next() {
  g_next = weft::sdp::next<SystemCall>("syscall");
  return g_next;
}

SystemCall* next_system_call() {
  SystemCall* const known = g_next.load(std::memory_order_relaxed);
  return known != nullptr ? known : find_next();
}

enum class Makes : uint8_t { other, process, process_elsewhere };

// Of these flags, with this stack. Where the child has another one, it returns to what the program
// has put there.
Makes made_by(uint64_t flags, bool own_stack) {
  if ((flags & CLONE_VM) != 0) return Makes::other;
  return own_stack ? Makes::process_elsewhere : Makes::process;
}

// Of clone3(2): the beginning of struct clone_args, which older headers do not have.
struct CloneArguments {
  uint64_t flags;
  uint64_t pidfd;
  uint64_t child_tid;
  uint64_t parent_tid;
  uint64_t exit_signal;
  uint64_t stack;
};

Makes made_by_clone3(long place, long size) {
  CloneArguments arguments{};
  if (size < static_cast<long>(sizeof arguments) ||
      !weft::copy_guarded(&arguments, reinterpret_cast<const void*>(place), sizeof arguments)) {
    return Makes::other;
  }
  return made_by(arguments.flags, arguments.stack != 0);
}

Makes made_by_call(long number, long first, long second) {
  switch (number) {
    case SYS_clone:
      return made_by(static_cast<uint64_t>(first), second != 0);
    case SYS_clone3:
      return made_by_clone3(first, second);
#ifdef SYS_fork
    case SYS_fork:
      return Makes::process;
#endif
    default:
      return Makes::other;
  }
}

// `call` makes the process and returns in both.
template <class Call>
long fork_by(Call call) {
  ForkHandlers::Fork fork;
  const long result = call();
  const int error = errno;
  if (result == 0) {
    fork.over_in_child();
  } else {
    fork.over_in_parent();
  }
  errno = error;
  return result;
}

[[gnu::noinline]] long make_or_end_process(long number, long a, long b, long c, long d, long e,
                                           long f) {
  if (number == SYS_exit_group) weft::sdp::await_last_bytes();
  if (number == SYS_execve || number == SYS_execveat) weft::sdp::about_to_execute();
  if (made_by_call(number, a, b) == Makes::process) {
    return fork_by([=] { return next_system_call()(number, a, b, c, d, e, f); });
  }
  // A child that returns elsewhere passes by here. It finds its connections relayed.
  if (made_by_call(number, a, b) == Makes::process_elsewhere) Table::relay_all();
  return next_system_call()(number, a, b, c, d, e, f);
}

[[gnu::noinline]] long call_on_descriptors(long number, long a, long b, long c, long d, long e,
                                           long f) {
  if (const auto answer = weft::sdp::before_call_on_descriptors(number, a, b, c)) return *answer;
  const long result = next_system_call()(number, a, b, c, d, e, f);
  return weft::sdp::after_call_on_descriptors(number, a, result);
}

[[gnu::noinline]] long call_of_adapter(long number, long a, long b, long c, long d, long e,
                                       long f) {
  weft::sdp::before_call_of_adapter(number, a);
  const long result = next_system_call()(number, a, b, c, d, e, f);
  weft::sdp::after_call_of_adapter(number, b, result);
  return result;
}

bool may_make_or_end_process(long number) {
  switch (number) {
#ifdef SYS_fork
    case SYS_fork:
#endif
    case SYS_clone:
    case SYS_clone3:
    case SYS_execve:
    case SYS_execveat:
    case SYS_exit_group:
      return true;
    default:
      return false;
  }
}

struct Begin {
  ForkHandlers::Fork fork;
  int (*body)(void*);
  void* argument;
};

int begin(void* place) {
  auto& all = *static_cast<Begin*>(place);
  all.fork.over_in_child();
  const int status = all.body(all.argument);
  // libc ends the calling thread alone. The library's, if it has begun here, would stay.
  if (Library::existing() != nullptr) _exit(status);
  return status;
}

}  // namespace

// The library's own calls come here, too, and so do the adapter's: the descriptors that they close
// are not the program's. All calls but the program's of these two kinds are a jump to libc's:
// nothing of this function is on the stack when it makes a thread there.
extern "C" [[gnu::visibility("default")]] long weft_sdp_syscall(long number, long a, long b, long c,
                                                                long d, long e,
                                                                long f) __asm__("syscall");
long weft_sdp_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (g_next.load(std::memory_order_relaxed) == nullptr || may_make_or_end_process(number))
      [[unlikely]]
    return make_or_end_process(number, a, b, c, d, e, f);
  if (weft::sdp::concerns_descriptors(number) && WEFT_SDP_FOR_PROGRAM) [[unlikely]]
    return call_on_descriptors(number, a, b, c, d, e, f);
  if (weft::sdp::makes_or_ends_descriptor(number) && !WEFT_SDP_FOR_PROGRAM) [[unlikely]]
    return call_of_adapter(number, a, b, c, d, e, f);
  return g_next.load(std::memory_order_relaxed)(number, a, b, c, d, e, f);
}

WEFT_SDP_EXPORT int clone(int (*body)(void*), void* stack, int flags, void* argument,
                          ...) noexcept {
  va_list more;
  va_start(more, argument);
  auto* const parent_tid = va_arg(more, pid_t*);
  auto* const thread_storage = va_arg(more, void*);
  auto* const child_tid = va_arg(more, pid_t*);
  va_end(more);
  auto* const next = WEFT_SDP_NEXT(clone);
  const auto libcs = [&](int (*first)(void*), void* with) {
    return next(first, stack, flags, with, parent_tid, thread_storage, child_tid);
  };
  if ((flags & CLONE_VM) != 0 || body == nullptr || stack == nullptr) {
    return libcs(body, argument);
  }
  Begin all{.fork{}, .body = body, .argument = argument};
  const int child = libcs(begin, &all);
  const int error = errno;
  all.fork.over_in_parent();
  errno = error;
  return child;
}

// As fork(2), but that libc calls no function of pthread_atfork(3).
WEFT_SDP_EXPORT pid_t _Fork() noexcept {
  return static_cast<pid_t>(fork_by([] { return WEFT_SDP_NEXT(_Fork)(); }));
}

// What pthread_atfork(3) calls. What this library and the adapter tell it libc does not get one by
// one, for their order is not only that of their coming (fork_handlers.h). Whose they are tells the
// object, an address in its library: a library that is being loaded may be called by the loader.
extern "C" int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(),
                                 void* object);
WEFT_SDP_EXPORT int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(),
                                      void* object) {
  const ForkHandlers::Of handlers{.before = before, .in_parent = in_parent, .in_child = in_child};
  if (!is_program(object) && ForkHandlers::add(handlers)) return 0;
  return WEFT_SDP_NEXT(__register_atfork)(before, in_parent, in_child, object);
}
