#include "measure/perf_power.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "kit/kernel_files.h"
#include "measure/energy_counter.h"
#include "measure/files.h"

namespace weft::measure {
namespace {

constexpr const char* kOtherSource = "measure by another source (--energy powercap, ipmi, battery)";

Part part_of(const std::string& event) {
  if (event == "energy-pkg") return Part::package;
  if (event == "energy-ram") return Part::dram;
  if (event == "energy-cores") return Part::core;
  if (event == "energy-gpu") return Part::uncore;
  if (event == "energy-psys") return Part::platform;
  return Part::other;
}

Unmeasured not_opened(const PowerEvent& event, int cpu, int error) {
  const std::string reason =
      fmt::format("perf event {} on CPU {}: {}", event.name, cpu, std::strerror(error));
  if (error == EACCES || error == EPERM) {
    return {
        reason,
        "run as root or with CAP_PERFMON, or let all users: sysctl kernel.perf_event_paranoid=0"};
  }
  return {reason, kOtherSource};
}

class Counter {
 public:
  Counter(std::string name, Part part, double joules, port::Fd fd)
      : name_(std::move(name)), part_(part), counter_(0, joules), fd_(std::move(fd)) {}

  void sample(const Clock& clock) {
    const auto reading = read();
    counter_.add(clock(), reading);
  }
  void reset() { counter_.reset(); }
  double seconds() const { return counter_.seconds(); }
  DomainEnergy joules() const { return {name_, part_, counter_.joules()}; }
  DomainEnergy watts() const { return {name_, part_, counter_.watts()}; }

 private:
  Measured<uint64_t> read() const {
    uint64_t value = 0;
    const ssize_t got = ::read(fd_.get(), &value, sizeof value);
    if (got == sizeof value) return value;
    return fail(Unmeasured{
        fmt::format("{}: {}", name_, got < 0 ? std::strerror(errno) : "the event gives no count"),
        kOtherSource});
  }

  std::string name_;
  Part part_;
  EnergyCounter counter_;
  port::Fd fd_;
};

class PerfPower final : public EnergySource {
 public:
  explicit PerfPower(std::vector<Counter> counters) : counters_(std::move(counters)) {}

  const char* name() const override { return "perf"; }
  void sample(const Clock& clock) override {
    for (Counter& counter : counters_) counter.sample(clock);
  }
  void reset() override {
    for (Counter& counter : counters_) counter.reset();
  }
  std::vector<DomainEnergy> domains() const override {
    std::vector<DomainEnergy> domains;
    for (const Counter& counter : counters_) domains.push_back(counter.joules());
    return domains;
  }
  double seconds() const override { return counters_.front().seconds(); }
  Measured<double> watts() const override {
    std::vector<DomainEnergy> domains;
    for (const Counter& counter : counters_) domains.push_back(counter.watts());
    return total_of(domains).value;
  }

 private:
  std::vector<Counter> counters_;
};

}  // namespace

std::vector<int> cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream in{text};
  for (std::string range; std::getline(in, range, ',');) {
    const char* end = range.data() + range.size();
    int first = 0;
    const auto [after, error] = std::from_chars(range.data(), end, first);
    if (error != std::errc{} || first < 0) return {};
    int last = first;
    if (after != end) {
      if (*after != '-') return {};
      const auto [stopped, wrong] = std::from_chars(after + 1, end, last);
      if (wrong != std::errc{} || stopped != end) return {};
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

Result<uint64_t, Unmeasured> event_config(const std::string& text) {
  uint64_t config = 0;
  std::istringstream in{text};
  for (std::string term; std::getline(in, term, ',');) {
    const size_t equals = term.find('=');
    const std::string name = term.substr(0, equals);
    const std::string value = equals == std::string::npos ? "1" : term.substr(equals + 1);
    char* end = nullptr;
    errno = 0;
    const uint64_t number = std::strtoull(value.c_str(), &end, 0);
    const bool known = name == "event" || name == "umask";
    if (!known || value.empty() || *end != '\0' || errno != 0 || number > 0xff) {
      return fail(
          Unmeasured{fmt::format("'{}' is no event that is known here", text), kOtherSource});
    }
    config |= name == "umask" ? number << 8 : number;
  }
  return config;
}

Measured<std::vector<PowerEvent>> power_events(const std::string& sysfs, const std::string& proc) {
  const std::string root = sysfs + "/bus/event_source/devices/power";
  const auto type = read_number(root + "/type");
  if (!type) {
    const auto cpus = read_text(proc + "/cpuinfo");
    const bool guest = cpus && cpus->find(" hypervisor") != std::string::npos;
    return fail(Unmeasured{type.error().what,
                           guest ? "this is a guest: measure on the host, or by a meter at the plug"
                                 : "modprobe rapl (Intel since Sandy Bridge, AMD since Zen)"});
  }
  // Without the file, as in some kernels' hybrids, CPU 0 stands for the only package.
  const auto mask = read_text(root + "/cpumask");
  const std::vector<int> cpus = mask ? cpu_list(*mask) : std::vector<int>{0};
  std::vector<PowerEvent> events;
  for (const std::string& name : kit::names_in(root + "/events")) {
    if (!name.starts_with("energy-") || name.find('.') != std::string::npos) continue;
    const std::string file = fmt::format("{}/events/{}", root, name);
    const auto text = read_text(file);
    const auto scale = read_text(file + ".scale");
    const auto unit = read_text(file + ".unit");
    if (!text || !scale || (unit && *unit != "Joules")) continue;
    const auto config = event_config(*text);
    if (!config) continue;
    events.push_back({.name = name,
                      .part = part_of(name),
                      .type = static_cast<uint32_t>(*type),
                      .config = *config,
                      .joules = std::strtod(scale->c_str(), nullptr),
                      .cpus = cpus});
  }
  return events;
}

port::Fd open_perf_counter(const PowerEvent& event, int cpu) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  constexpr int kAllProcesses = -1;
  constexpr int kNoGroup = -1;
  return port::Fd{static_cast<int>(::syscall(SYS_perf_event_open, &attributes, kAllProcesses, cpu,
                                             kNoGroup, PERF_FLAG_FD_CLOEXEC))};
}

OpenSource open_perf_power(const std::string& sysfs, const std::string& proc,
                           const OpenCounter& open) {
  const auto events = power_events(sysfs, proc);
  if (!events) return fail(events.error());
  std::vector<Counter> counters;
  Unmeasured why{"the PMU 'power' has no event energy-pkg", kOtherSource};
  bool package = false;
  for (const PowerEvent& event : *events) {
    for (size_t i = 0; i < event.cpus.size(); ++i) {
      port::Fd fd = open(event, event.cpus[i]);
      if (!fd.valid()) {
        if (event.part == Part::package) return fail(not_opened(event, event.cpus[i], errno));
        continue;
      }
      package = package || event.part == Part::package;
      const std::string name =
          event.cpus.size() > 1 ? fmt::format("{} of package-{}", event.name, i) : event.name;
      counters.emplace_back(name, event.part, event.joules, std::move(fd));
    }
  }
  if (!package) return fail(why);
  return std::unique_ptr<EnergySource>(new PerfPower(std::move(counters)));
}

}  // namespace weft::measure
