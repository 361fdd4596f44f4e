#include "measure/meter.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/wall_clock.h"
#include "kit/clock.h"
#include "kit/json_text.h"
#include "kit/or_null.h"
#include "measure/own_usage.h"

namespace weft::measure {
namespace {

// Of one CPU, at most the meter's: with many threads to look at it looks more seldom.
constexpr double kShare = 0.02;
// Even then often enough for counters that begin anew.
constexpr double kLongestPause = 10;
// What a process may touch on its way from telling its memory to becoming the command; the kernel
// maps the neighbours of each page, too.
constexpr uint64_t kBehind = 1024 * 1024;

double thread_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double self_cpu_s() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  return seconds(r.ru_utime) + seconds(r.ru_stime);
}

}  // namespace

Meter::Meter(MeterSetting setting)
    : setting_(std::move(setting)),
      energy_(setting_.energy, setting_.roots),
      tree_(ProcessFiles{setting_.roots.proc}, getpid(),
            static_cast<double>(sysconf(_SC_CLK_TCK))) {
  // What the command leaves behind would otherwise be counted nowhere.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void Meter::begin() {
  own_cpu_s_ = self_cpu_s();
  energy_.begin();
  begun_ = moment();
  last_ = begun_;
  if (begun_.bytes) seen_bytes_ = *begun_.bytes;
}

void Meter::watch(pid_t root, uint64_t had_bytes) {
  root_ = root;
  had_bytes_ = had_bytes;
  tree_.begin(root);
  thread_ = std::thread{[this] { look_on(); }};
}

void Meter::ask_to_stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
}

void Meter::stop() {
  ask_to_stop();
  if (thread_.joinable()) thread_.join();
}

void Meter::look_on() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    const double before = thread_cpu_s();
    // Under the lock, so that none of these is later than the one that end() takes.
    const Moment now = moment();
    lock.unlock();
    look(now);
    const double cost = thread_cpu_s() - before;
    const double interval = std::chrono::duration<double>(setting_.interval).count();
    const std::chrono::duration<double> pause{
        std::max(interval, std::min(cost / kShare, kLongestPause))};
    lock.lock();
    wake_.wait_for(lock, pause, [this] { return stopping_; });
  }
}

// What is divided by the time is read with it: a source of energy may take seconds to answer.
Meter::Moment Meter::moment() const {
  return {.time_s = boot_time(),
          .cpu_s = 0,
          .machine = read_machine_cpu(setting_.roots.proc),
          .bytes = counted_bytes()};
}

void Meter::look(Moment now) {
  tree_.look();
  // One that ended may be missing until its parent has waited for it.
  now.cpu_s = std::max(last_.cpu_s, tree_.cpu_s() + ended_.cpu_s());
  energy_.sample();
  ++looks_;
  if (now.bytes) {
    bytes_went_back_ = bytes_went_back_ || *now.bytes < seen_bytes_;
    seen_bytes_ = *now.bytes;
  }
  if (setting_.samples != nullptr) write_sample(now);
  last_ = now;
  wait_for_orphans();
}

void Meter::write_sample(const Moment& now) {
  const double span = now.time_s - last_.time_s;
  if (span <= 0) return;
  nlohmann::json line = {{"t", now.time_s - begun_.time_s},
                         {"time", static_cast<double>(wall_clock_ns()) * 1e-9},
                         {"cpus", (now.cpu_s - last_.cpu_s) / span},
                         {"machine_cpus", nullptr},
                         {"softirq_cpus", nullptr},
                         {"watts", kit::or_null(energy_.watts())},
                         {"gbps", nullptr}};
  if (now.machine && last_.machine) {
    const MachineCpu did = *now.machine - *last_.machine;
    line["machine_cpus"] = did.busy_s() / span;
    line["softirq_cpus"] = did.softirq_s / span;
  }
  // An interface that was set up anew counts from 0.
  if (now.bytes && last_.bytes && *now.bytes >= *last_.bytes) {
    line["gbps"] = static_cast<double>(*now.bytes - *last_.bytes) * 8e-9 / span;
  }
  // Not by fmt::print: what it throws would end this thread, and with it the whole measurement.
  const std::string text = kit::text_of(line) + '\n';
  if (std::fwrite(text.data(), 1, text.size(), setting_.samples) == text.size() &&
      std::fflush(setting_.samples) == 0) {
    return;
  }
  samples_end_ = Unmeasured{fmt::format("from {:.3f} s on they could not be written: {}",
                                        last_.time_s - begun_.time_s, std::strerror(errno)),
                            "give --samples a file on a disk that has space"};
  setting_.samples = nullptr;
}

void Meter::wait_for_orphans() {
  for (const pid_t orphan : tree_.ended_orphans()) {
    rusage usage{};
    if (wait4(orphan, nullptr, WNOHANG, &usage) == orphan) add(usage);
  }
}

void Meter::add(const rusage& usage) {
  ended_.user_s += seconds(usage.ru_utime);
  ended_.system_s += seconds(usage.ru_stime);
  ended_.voluntary += static_cast<uint64_t>(usage.ru_nvcsw);
  ended_.involuntary += static_cast<uint64_t>(usage.ru_nivcsw);
  ended_peak_bytes_ = std::max(ended_peak_bytes_, static_cast<uint64_t>(usage.ru_maxrss) * 1024);
}

Measured<uint64_t> Meter::counted_bytes() const {
  if (setting_.interface) return interface_bytes(setting_.roots.proc, *setting_.interface);
  return fail(Unmeasured{"nobody said how many bytes the command moves",
                         "give --bytes, or --network to count them"});
}

Measured<uint64_t> Meter::moved_bytes(const Moment& now) const {
  if (setting_.bytes) return *setting_.bytes;
  if (!now.bytes) return now.bytes;
  if (!begun_.bytes) return begun_.bytes;
  if (!bytes_went_back_) return *now.bytes - *begun_.bytes;
  return fail(Unmeasured{"the interface's counter went back", "keep the interface meanwhile"});
}

Measured<uint64_t> Meter::peak_bytes() const {
  // The kernel's figure for a process includes what it had before it became the command.
  const uint64_t largest = std::max(ended_peak_bytes_, tree_.peak_bytes());
  if (largest > had_bytes_ + kBehind) return largest;
  return fail(Unmeasured{
      fmt::format(
          "between {} kB, when it was looked at, and {} kB, which may be what weft had before it "
          "became the command",
          tree_.peak_bytes() / 1024, largest / 1024),
      "none for so small a command; larger ones are measured exactly"});
}

Report Meter::end() {
  Report report;
  // Before the thread is waited for, which may be waiting for a source of energy.
  ask_to_stop();
  const Moment now = moment();
  report.seconds = now.time_s - begun_.time_s;
  stop();
  // It is a zombie: it has no memory any more, but its first thread's account and its children.
  look(now);
  rusage usage{};
  int status = 0;
  if (wait4(root_, &status, WNOHANG, &usage) == root_) add(usage);
  // One look for both, so that each process is either counted with the living or waited for,
  // whenever it ends.
  auto [living, names] = tree_.survivors();
  wait_for_orphans();

  report.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  report.exit_status = report.signal != 0 ? 128 + report.signal : WEXITSTATUS(status);
  report.looks = looks_;
  report.samples_end = samples_end_;
  report.interval_s = std::chrono::duration<double>(setting_.interval).count();
  report.meter_cpu_s = self_cpu_s() - own_cpu_s_;
  report.usage = {.user_s = ended_.user_s + living.user_s,
                  .system_s = ended_.system_s + living.system_s,
                  .voluntary = ended_.voluntary + living.voluntary,
                  .involuntary = ended_.involuntary + living.involuntary};
  report.survivors = std::move(names);
  report.threads = tree_.threads();
  report.peak_bytes = peak_bytes();
  report.peak_sum_bytes = tree_.peak_sum_bytes();
  report.machine = last_.machine && begun_.machine
                       ? Measured<MachineCpu>{*last_.machine - *begun_.machine}
                       : last_.machine;
  report.energy = energy_.results();
  report.bytes = moved_bytes(last_);
  if (setting_.bytes) {
    report.bytes_from = "--bytes";
  } else if (setting_.interface) {
    report.bytes_from = setting_.interface->name + (setting_.interface->sent ? ":tx" : ":rx");
  }
  return report;
}

}  // namespace weft::measure
