#include "measure/own_usage.h"

#include <unistd.h>

#include <ctime>

#include "measure/process_files.h"

namespace weft::measure {
namespace {

double cpu_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// By the scheduler's own account of each thread, which is exactly the same for one that did not
// run; the difference of two clocks moves while they are read, but every kernel has them.
double other_threads_cpu() {
  const ProcessFiles files{"/proc"};
  const pid_t self = getpid();
  double sum = 0;
  for (const pid_t thread : files.threads(self)) {
    if (thread == gettid()) continue;
    const auto spent = files.exact_cpu_s(self, thread);
    if (!spent) return cpu_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_clock(CLOCK_THREAD_CPUTIME_ID);
    sum += *spent;
  }
  return sum;
}

}  // namespace

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

OwnUsage own_usage() {
  const double others = other_threads_cpu();
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const double user = seconds(r.ru_utime);
  const double system = seconds(r.ru_stime);
  return {.user_s = user,
          .system_s = system,
          .cpu_s = user + system,
          .others_cpu_s = others,
          .switches = static_cast<double>(r.ru_nvcsw + r.ru_nivcsw)};
}

double own_peak_bytes() {
  const ProcessFiles files{"/proc"};
  const auto peak = files.status(getpid(), getpid()).peak_bytes;
  return peak ? static_cast<double>(*peak) : 0;
}

}  // namespace weft::measure
