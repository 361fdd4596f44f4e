#include <fmt/format.h>

#include <algorithm>

#include "measure/report.h"

namespace weft::measure {
namespace {

constexpr size_t kShownThreads = 10;

std::string line(const char* label, const std::string& text) {
  return fmt::format("  {:<10} {}\n", label, text);
}

std::string sentence(const Unmeasured& why) {
  return fmt::format("unmeasured: {}; {}", why.reason, why.remedy);
}

std::string size_text(uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (size >= 1e9) return fmt::format("{:.2f} GB", size * 1e-9);
  return size >= 1e6 ? fmt::format("{:.1f} MB", size * 1e-6)
                     : fmt::format("{:.0f} kB", size * 1e-3);
}

std::string counted(size_t n, const char* one, const char* several) {
  return fmt::format("{} {}", n, n == 1 ? one : several);
}

std::string ending(const Report& report) {
  if (report.signal != 0) return fmt::format("ended by signal {}", report.signal);
  return fmt::format("exit status {}", report.exit_status);
}

std::string cpu_text(const Report& report) {
  return fmt::format("{:.3f} s: user {:.3f} s, system {:.3f} s; {:.2f} CPUs on average",
                     report.usage.cpu_s(), report.usage.user_s, report.usage.system_s,
                     report.seconds > 0 ? report.usage.cpu_s() / report.seconds : 0);
}

std::string threads_text(const Report& report) {
  std::string text;
  double rest = 0;
  size_t others = 0;
  for (size_t i = 0; i < report.threads.size(); ++i) {
    const ThreadUsage& t = report.threads[i];
    if (i >= kShownThreads) {
      rest += t.cpu_s;
      others += t.threads;
      continue;
    }
    const std::string name =
        t.name == t.process ? t.name : fmt::format("{} of {}", t.name, t.process);
    const std::string who = t.pid != 0 ? fmt::format("{}, {}", t.thread, name)
                                       : counted(t.threads, name.c_str(), name.c_str());
    text += line(i == 0 ? "threads" : "",
                 fmt::format("{:.3f} s  {} (user {:.2f}, system {:.2f}; {} switches)", t.cpu_s, who,
                             t.user_s, t.system_s, t.voluntary + t.involuntary));
  }
  if (others > 0)
    text += line("", fmt::format("{:.3f} s  {}", rest, counted(others, "other", "others")));
  if (const double unseen = unseen_cpu_s(report); unseen >= 0.0005) {
    text += line(text.empty() ? "threads" : "",
                 fmt::format("{:.3f} s  of threads that ended between two looks", unseen));
  }
  return text;
}

std::string memory_text(const Report& report) {
  if (!report.peak_bytes) return sentence(report.peak_bytes.error());
  std::string largest = size_text(*report.peak_bytes) + " at most in one process";
  if (report.peak_sum_bytes == 0) return largest;
  return fmt::format("{}, {} in all together when looked at", largest,
                     size_text(report.peak_sum_bytes));
}

std::string machine_text(const Report& report) {
  if (!report.machine) return sentence(report.machine.error());
  const MachineCpu& m = *report.machine;
  return fmt::format(
      "{} busy {:.2f} s: user {:.2f}, system {:.2f}, softirq {:.2f}, irq {:.2f}; steal {:.2f} s; "
      "{} "
      "context switches",
      counted(m.cpus, "CPU", "CPUs"), m.busy_s(), m.user_s, m.system_s, m.softirq_s, m.irq_s,
      m.steal_s, m.switches);
}

std::string domains_text(const SourceEnergy& energy) {
  std::string text;
  for (const DomainEnergy& domain : energy.domains) {
    text += line("", fmt::format("{}: {}", domain.name,
                                 domain.joules ? fmt::format("{:.3f} J", *domain.joules)
                                               : sentence(domain.joules.error())));
  }
  return text;
}

std::string energy_text(const Report& report) {
  std::string text;
  for (const SourceEnergy& energy : report.energy) {
    const char* label = text.empty() ? "energy" : "";
    if (energy.watts && energy.joules) {
      text += line(label, fmt::format("{:.3f} J, {:.3f} W on average: {} by {}", *energy.joules,
                                      *energy.watts, energy.of, energy.source));
      text += domains_text(energy);
    } else {
      text += line(label, fmt::format("{} {}", energy.source, sentence(energy.watts.error())));
    }
  }
  return text.empty() ? line("energy", "not asked for") : text;
}

std::string figure(const char* label, const Measured<double>& value, const std::string& unit) {
  return line(label, value ? fmt::format("{:.4g} {}", *value, unit) : sentence(value.error()));
}

std::string transfer_text(const Report& report) {
  if (!report.bytes) return "";
  std::string text = line("bytes", fmt::format("{} by {}", *report.bytes, report.bytes_from));
  if (*report.bytes == 0) return text + line("", sentence(gigabits_per_s(report).error()));
  text += figure("rate", gigabits_per_s(report), "Gb/s");
  text += figure("CPU", cpu_s_per_gb(report), "s/GB of the command");
  text += figure("", machine_cpu_s_per_gb(report), "s/GB of the whole machine");
  const auto best = best_of(report.energy);
  if (best) {
    text += figure("E", efficiency(report, best->watts),
                   fmt::format("Gb/s per W: {} by {}", best->of, best->source));
  } else {
    text += line("E", "unmeasured: no power was");
  }
  return text;
}

}  // namespace

std::string as_text(const Report& report) {
  std::string command;
  for (const std::string& word : report.command) command += (command.empty() ? "" : " ") + word;
  std::string text = fmt::format("weft measure: {}\n", command);
  text += line("time", fmt::format("{:.3f} s, {}", report.seconds, ending(report)));
  text += line("CPU", cpu_text(report));
  text += threads_text(report);
  text += line("switches", fmt::format("{} voluntary, {} involuntary", report.usage.voluntary,
                                       report.usage.involuntary));
  text += line("memory", memory_text(report));
  text += line("machine", machine_text(report));
  text += energy_text(report);
  text += transfer_text(report);
  if (!report.survivors.empty()) {
    std::string names;
    for (const std::string& name : report.survivors) names += (names.empty() ? "" : ", ") + name;
    text += line("note", fmt::format("still running, counted up to now: {}", names));
  }
  if (report.samples_end) text += line("samples", sentence(*report.samples_end));
  text += line("meter", fmt::format("{} looks, {:.3f} s of CPU of its own", report.looks,
                                    report.meter_cpu_s));
  return text;
}

}  // namespace weft::measure
