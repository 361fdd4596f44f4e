#include "engine/helper_schedule.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/log.h"

namespace weft::engine {
namespace {

constexpr int kResetOnFork = 0x40000000;  // SCHED_RESET_ON_FORK
constexpr int kMostPriority = 99;

const Schedule g_at_load = schedule_of(::getpid());

// The helper works for microseconds at a time, often beside a program that spins and a peer that
// does, on as many processors: with a short slice the scheduler lets it in at its wake-up instead
// of after a slice of theirs. Linux 6.12 and later have slices; others ignore them.
void become_ordinary(int policy) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  static_assert(sizeof attributes == 48);
  attributes.size = sizeof attributes;
  attributes.policy = static_cast<uint32_t>(policy);
  attributes.nice = ::getpriority(PRIO_PROCESS, 0);
  attributes.runtime = 100'000;  // ns, the least
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

bool set_fifo(pid_t thread, int priority) {
  const sched_param p{.sched_priority = priority};
  return ::sched_setscheduler(thread, SCHED_FIFO, &p) == 0;
}

void say_refused(int wanted) {
  if (wanted > kMostPriority) {
    WEFT_LOG_REFUSAL(
        "a thread of this program has real-time priority 99, and none is above that for weft's "
        "helper thread: while it spins on its memory on the helper's processor, nothing arrives. "
        "Remedy: start the program with priority 98 or less (chrt -f 98)");
    return;
  }
  rlimit limit{};
  (void)::getrlimit(RLIMIT_RTPRIO, &limit);
  WEFT_LOG_REFUSAL(
      "a thread of this program has real-time priority %d, and weft's helper thread may not have "
      "%d: the limit of this process is %llu. While such threads spin on their memory on all "
      "processors that the helper may use, nothing arrives. Remedy: allow it (`ulimit -r %d`, "
      "rtprio in limits.conf, LimitRTPRIO of systemd), or leave the helper a processor",
      wanted - 1, wanted, static_cast<unsigned long long>(limit.rlim_cur), wanted);
}

}  // namespace

bool Schedule::real_time() const {
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

Schedule schedule_of(pid_t thread) noexcept {
  Schedule s;
  s.policy = std::max(::sched_getscheduler(thread), 0) & ~kResetOnFork;
  sched_param p{};
  if (s.real_time() && ::sched_getparam(thread, &p) == 0) s.priority = p.sched_priority;
  // The library's function knows 1024 processors.
  const long size = ::syscall(SYS_sched_getaffinity, thread, sizeof s.cpus, s.cpus.data());
  s.cpus_size = size > 0 ? static_cast<size_t>(size) : 0;
  return s;
}

const Schedule& schedule_at_load() {
  return g_at_load;
}

void HelperSchedule::begin(const Schedule& maker) {
  helper_.store(static_cast<pid_t>(::syscall(SYS_gettid)), std::memory_order_release);
  choose(maker);
  begun_.store(true, std::memory_order_release);
  begun_.notify_all();
}

void HelperSchedule::choose(const Schedule& maker) {
  const Schedule& process = schedule_at_load();
  // Refused where the process has lost all of these since; then it keeps what it has.
  if (process.cpus_size > 0 && process.cpus != maker.cpus) {
    (void)::syscall(SYS_sched_setaffinity, 0, process.cpus_size, process.cpus.data());
  }
  const Schedule own = schedule_of(0);
  if (own.real_time()) priority_.store(own.priority, std::memory_order_relaxed);
  if (maker.real_time()) {
    raise_above(maker.priority);
  } else if (!own.real_time()) {
    // One of SCHED_BATCH is let in, if later; one of SCHED_IDLE is not where anything else runs.
    const bool idle = own.policy == SCHED_IDLE && !process.real_time();
    become_ordinary(idle ? process.policy : own.policy);
  }
}

void HelperSchedule::serve_caller() {
  const Schedule caller = schedule_of(0);
  if (caller.real_time()) raise_above(caller.priority);
}

void HelperSchedule::raise_above(int priority) {
  const int wanted = priority + 1;
  if (wanted <= this->priority()) return;
  const std::lock_guard guard{raising_};
  const pid_t helper = helper_.load(std::memory_order_acquire);
  if (wanted <= this->priority() || helper == 0) return;
  if (wanted <= kMostPriority && set_fifo(helper, wanted)) {
    priority_.store(wanted, std::memory_order_relaxed);
    return;
  }
  if (refused_ != 0 && refused_ <= wanted) return;
  refused_ = wanted;
  // Beside such a thread at least, where there is another processor.
  if (wanted - 1 > this->priority() && set_fifo(helper, wanted - 1)) {
    priority_.store(wanted - 1, std::memory_order_relaxed);
  }
  say_refused(wanted);
}

}  // namespace weft::engine
