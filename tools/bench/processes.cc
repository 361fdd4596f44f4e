#include "bench/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "bench/sdp_modes.h"
#include "bench/side.h"
#include "bench/work.h"
#include "cli/stop.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "kit/launch.h"

namespace weft::bench {
namespace {

// Beyond the time of the measurement: start, warm-up, comparing the data. Debug builds and busy
// machines take their time.
constexpr double kAllowance = 60;
constexpr int kFirst = -20;                       // nice value
constexpr int64_t kSampleInterval = 100'000'000;  // ns, of power while a case runs
// ns for the second side after the first one failed, and for a side to exit.
constexpr int64_t kGrace = 1'000'000'000;

// Before everything else that does not run in real time. A session is a group of its own for the
// scheduler (sched_autogroup_enabled), inside which alone a nice value counts.
void go_first() {
  ::setsid();
  ::setpriority(PRIO_PROCESS, 0, kFirst);
  const port::Fd group{::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC)};
  const std::string value = std::to_string(kFirst);
  // Without automatic groups there is no such file, and the nice value is enough.
  if (group.valid()) (void)!::write(group.get(), value.data(), value.size());
}

// By SDP alone: what falls back to TCP would be measured as SDP. The other libraries lie beside the
// one that is measured.
void take_way(const SdpMode& mode, const std::string& library) {
  if (!mode.preloaded) return;
  const std::string folder = library.substr(0, library.rfind('/'));
  ::setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
  ::setenv("LD_PRELOAD", (folder + "/" + kit::kSdpLibrary).c_str(), 1);
  ::setenv("ALWAYS_USE_SDP", "1", 1);
  for (size_t i = 0; i + 1 < mode.environment.size() && mode.environment[i] != nullptr; i += 2) {
    ::setenv(mode.environment[i], mode.environment[i + 1], 1);
  }
}

class Side {
 public:
  Side(const char* name, const Order& order, const Place& place, std::optional<int> cpu, bool first,
       Channel peer)
      : name_(name) {
    auto [ours, theirs] = make_channel();
    control_ = std::move(ours);
    pid_ = ::fork();
    if (pid_ < 0) throw kit::system_failure("fork");
    if (pid_ == 0) become_side(order, place, cpu, first, theirs, peer);
    theirs.close();
    control_.send(order);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() {
    if (!reported_) ::kill(pid_, SIGKILL);
    (void)exit_status();
  }

  int fd() const { return control_.fd(); }
  bool reported() const { return reported_; }
  // It may begin, where it waits for that.
  void go() const { control_.send("go"); }
  // To be called when fd() is readable; phase(bool begins) for one that is measured. False for an
  // error.
  template <class F>
  bool hear(SideResult& result, F&& phase, std::string& error) {
    nlohmann::json report;
    try {
      report = control_.receive();
    } catch (const kit::Failure&) {
      reported_ = true;
      error = fmt::format("the {} {}", name_, ending());
      return false;
    }
    if (report.contains(kPhase)) {
      phase(report[kPhase] == kBegins);
      return true;
    }
    reported_ = true;
    if (report.contains("error")) {
      error = fmt::format("the {}: {}", name_, report["error"].get<std::string>());
      return false;
    }
    result = report;
    return true;
  }

 private:
  [[noreturn]] static void become_side(const Order& order, const Place& place,
                                       std::optional<int> cpu, bool first, const Channel& control,
                                       const Channel& peer) {
    // Not to outlive the one who reads the results.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (place.network_namespace.valid() &&
        ::setns(place.network_namespace.get(), CLONE_NEWNET) != 0) {
      ::_exit(126);
    }
    if (cpu) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(*cpu, &set);
      (void)::sched_setaffinity(0, sizeof set, &set);
    }
    if (first) go_first();
    ::setenv("WEFT_CRC", order.spec.crc ? "on" : "off", 1);
    ::setenv("WEFT_DATAGRAM_CRC", order.spec.crc ? "on" : "off", 1);
    ::setenv("WEFT_RC", order.spec.channels ? "udp" : "tcp", 1);
    ::setenv("WEFT_UD", order.spec.channels ? "reliable" : "plain", 1);
    ::setenv("WEFT_SAME_HOST", order.spec.same_host ? "on" : "off", 1);
    ::setenv("WEFT_IP", place.address.c_str(), 1);
    if (const SdpMode* mode = find_sdp_mode(order.spec.sockets)) take_way(*mode, order.library);
    if (!order.spec.fault.empty()) ::setenv("WEFT_FAULT", order.spec.fault.c_str(), 1);
    for (const int fd : {control.fd(), peer.fd()}) ::fcntl(fd, F_SETFD, 0);
    // What is printed here would get into the report.
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    std::string control_word = fmt::format("--control={}", control.fd());
    std::string peer_word = fmt::format("--peer={}", peer.fd());
    std::array<std::string, 5> words{"weft", "bench", "side", control_word, peer_word};
    std::array<char*, 6> argv{};
    for (size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
    ::execv("/proc/self/exe", argv.data());
    ::_exit(126);
  }

  // One that has no more to say, and yet does not exit, is killed.
  int exit_status() {
    const int64_t until = kit::now_ns() + kGrace;
    while (!status_) {
      int status = 0;
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == pid_ || (ended < 0 && errno != EINTR)) status_ = status;
      if (status_) break;
      if (kit::now_ns() > until) ::kill(pid_, SIGKILL);
      ::poll(nullptr, 0, 1);
    }
    return *status_;
  }

  std::string ending() {
    const int status = exit_status();
    if (WIFSIGNALED(status)) {
      return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                         ::strsignal(WTERMSIG(status)));
    }
    return fmt::format("ended without a report, status {}", WEXITSTATUS(status));
  }

  const char* name_;
  Channel control_;
  pid_t pid_ = -1;
  bool reported_ = false;
  std::optional<int> status_;
};

void hear_both(Side& initiator, Side& target, int64_t until, PhaseMeter& meter, Measurement& m) {
  while (!cli::stop_asked() && (!initiator.reported() || !target.reported())) {
    std::array<pollfd, 2> fds{{{.fd = initiator.reported() ? -1 : initiator.fd(), .events = POLLIN},
                               {.fd = target.reported() ? -1 : target.fd(), .events = POLLIN}}};
    const int64_t left = until - kit::now_ns();
    if (left <= 0) break;
    const int64_t pause = meter.wants_samples() ? std::min(left, kSampleInterval) : left;
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(pause / 1'000'000) + 1);
    if (ready < 0) {
      if (errno == EINTR) continue;
      throw kit::system_failure("poll");
    }
    if (ready == 0 && meter.wants_samples()) meter.sample();
    const auto take = [&](const pollfd& fd, Side& side, SideResult& result) {
      if (fd.revents == 0) return;
      std::string error;
      const auto phase = [&](bool begins) {
        if (begins) {
          meter.begin();
        } else {
          m.machine = meter.end();
        }
      };
      if (side.hear(result, phase, error)) return;
      // What the second one says is mostly that the first one has gone.
      if (m.error.empty()) m.error = error;
      until = std::min(until, kit::now_ns() + kGrace);
    };
    take(fds[0], initiator, m.initiator);
    take(fds[1], target, m.target);
  }
}

// One stream of several that share a link.
struct Stream {
  std::unique_ptr<Side> target;
  std::unique_ptr<Side> initiator;
  Measurement seen;
  double messages_per_s() const {
    const SideResult& i = seen.initiator;
    return i.seconds > 0 ? static_cast<double>(i.messages) / i.seconds : 0;
  }
};

// The work of several sides.
void add(const SideResult& one, SideResult& all) {
  all.messages += one.messages;
  all.seconds = std::max(all.seconds, one.seconds);
  all.cpu_s += one.cpu_s;
  all.user_s += one.user_s;
  all.system_s += one.system_s;
  all.library_cpu_s += one.library_cpu_s;
  all.switches += one.switches;
  all.peak_bytes = std::max(all.peak_bytes, one.peak_bytes);
  all.intact = all.intact && one.intact;
  all.congestion = one.congestion;
}

// Until each has its result, or one has failed. Nobody begins before all can.
void hear_all(std::vector<Stream>& streams, int64_t until) {
  size_t ready = 0;
  size_t reported = 0;
  bool failed = false;
  const auto take = [&](Side& side, SideResult& result, std::string& error) {
    const auto phase = [&](bool begins) {
      if (!begins || ++ready < streams.size()) return;
      for (const Stream& s : streams) s.initiator->go();
    };
    if (!side.hear(result, phase, error)) failed = true;
    if (side.reported()) ++reported;
  };
  while (!failed && reported < 2 * streams.size() && !cli::stop_asked() && kit::now_ns() < until) {
    std::vector<pollfd> fds;
    for (const Stream& s : streams) {
      for (const auto* side : {s.initiator.get(), s.target.get()}) {
        fds.push_back({.fd = side->reported() ? -1 : side->fd(), .events = POLLIN, .revents = 0});
      }
    }
    const int64_t left_ms = (until - kit::now_ns()) / 1'000'000;
    if (::poll(fds.data(), fds.size(), static_cast<int>(left_ms) + 1) < 0 && errno != EINTR) {
      throw kit::system_failure("poll");
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      Stream& s = streams[i];
      if (fds[2 * i].revents != 0) take(*s.initiator, s.seen.initiator, s.seen.error);
      if (fds[2 * i + 1].revents != 0) take(*s.target, s.seen.target, s.seen.error);
    }
  }
}

// At most so many.
std::vector<int> first_cpus(size_t count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> found;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return found;
  for (int cpu = 0; cpu < CPU_SETSIZE && found.size() < count; ++cpu) {
    if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
  }
  return found;
}

}  // namespace

Pinning two_cpus() {
  const std::vector<int> found = first_cpus(2);
  if (found.size() < 2) return {};
  return {.initiator = found[0], .target = found[1]};
}

Pinning one_cpu() {
  const std::vector<int> found = first_cpus(1);
  if (found.empty()) return {};
  return {.initiator = found[0], .target = found[0]};
}

namespace {

Stream start_sides(const Spec& spec, double seconds, const Setting& setting) {
  auto [one_end, other_end] = make_channel();
  Order order{.spec = spec,
              .role = Role::target,
              .address = setting.network.target.address,
              .library = setting.library,
              .seconds = seconds};
  Stream s;
  s.target = std::make_unique<Side>("target", order, setting.network.target, setting.pinning.target,
                                    setting.first, std::move(other_end));
  order.role = Role::initiator;
  order.address = setting.network.initiator.address;
  s.initiator =
      std::make_unique<Side>("initiator", order, setting.network.initiator,
                             setting.pinning.initiator, setting.first, std::move(one_end));
  return s;
}

std::string too_late(double seconds) {
  return fmt::format("no result within {:.0f} s", seconds + kAllowance);
}

// The streams of the case, and as many of plain TCP, by turns.
void run_beside(const Spec& spec, double seconds, const Setting& setting, int64_t until,
                Measurement& m) {
  const Spec tcp{.name = "tcp",
                 .operation = Operation::tcp_stream,
                 .size = spec.size,
                 .loss = spec.loss,
                 .delay_ms = spec.delay_ms,
                 .link_mbps = spec.link_mbps,
                 .flows = spec.flows};
  std::vector<Stream> streams;
  for (uint32_t i = 0; i < spec.flows; ++i) {
    streams.push_back(start_sides(spec, seconds, setting));
    streams.push_back(start_sides(tcp, seconds, setting));
  }
  hear_all(streams, until);
  const double gigabits = static_cast<double>(spec.size) * 8e-9;
  double least = std::numeric_limits<double>::max();
  double own = 0;
  double beside = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    const Stream& s = streams[i];
    if (m.error.empty()) m.error = s.seen.error;
    if (m.error.empty() && !(s.initiator->reported() && s.target->reported())) {
      m.error = too_late(seconds);
    }
    (i % 2 == 0 ? own : beside) += s.messages_per_s() * gigabits;
    if (i % 2 != 0) continue;
    least = std::min(least, s.messages_per_s() * gigabits);
    add(s.seen.initiator, m.initiator);
    add(s.seen.target, m.target);
  }
  m.initiator.extra = {{kOwnGbps, own},
                       {kBesideGbps, beside},
                       {kLeastOfMean, own > 0 ? least * spec.flows / own : 0}};
}

}  // namespace

Measurement run_once(const Spec& spec, double seconds, const Setting& setting) {
  Measurement m;
  try {
    setting.network.shape(spec.loss, spec.delay_ms, spec.link_mbps);
    const int64_t until = kit::now_ns() + static_cast<int64_t>((seconds + kAllowance) * 1e9);
    if (spec.flows > 0) {
      run_beside(spec, seconds, setting, until, m);
    } else {
      const Stream s = start_sides(spec, seconds, setting);
      hear_both(*s.initiator, *s.target, until, setting.meter, m);
      if (m.error.empty() && !(s.initiator->reported() && s.target->reported())) {
        m.error = too_late(seconds);
      }
    }
  } catch (const kit::Failure& failure) {
    m.error = failure.what();
  }
  if (m.error.empty() && !(m.initiator.intact && m.target.intact)) {
    m.error = "what arrived is not what was sent";
  }
  return m;
}

}  // namespace weft::bench
