#include "measure/report.h"

namespace weft::measure {
namespace {

using nlohmann::json;

json thread_json(const ThreadUsage& thread) {
  json j = {{"process", thread.process},     {"thread", thread.name},
            {"threads", thread.threads},     {"cpu_s", thread.cpu_s},
            {"user_s", thread.user_s},       {"system_s", thread.system_s},
            {"voluntary", thread.voluntary}, {"involuntary", thread.involuntary}};
  if (thread.pid != 0) {
    j["pid"] = thread.pid;
    j["tid"] = thread.thread;
  }
  return j;
}

json machine_json(const MachineCpu& machine) {
  return {{"cpus", machine.cpus},
          {"busy_s", machine.busy_s()},
          {"user_s", machine.user_s},
          {"system_s", machine.system_s},
          {"irq_s", machine.irq_s},
          {"softirq_s", machine.softirq_s},
          {"steal_s", machine.steal_s},
          {"idle_s", machine.idle_s},
          {"context_switches", static_cast<uint64_t>(machine.switches)}};
}

json source_json(const Report& report, const SourceEnergy& energy) {
  json j = {{"source", energy.source}};
  if (!energy.watts) j.update(as_json(energy.watts.error()));
  if (energy.domains.empty()) return j;
  j["of"] = energy.of;
  j["seconds"] = energy.seconds;
  j["joules"] = as_json(energy.joules);
  j["watts"] = as_json(energy.watts);
  j["efficiency_gbps_per_w"] = as_json(efficiency(report, energy.watts));
  j["domains"] = json::array();
  for (const DomainEnergy& domain : energy.domains) {
    json d = {{"name", domain.name}, {"part", name_of(domain.part)}};
    d["joules"] = as_json(domain.joules);
    j["domains"].push_back(d);
  }
  return j;
}

json energy_json(const Report& report) {
  json j = json::object();
  const auto best = best_of(report.energy);
  if (best) {
    j = {{"source", best->source}, {"of", best->of}};
    j["watts"] = as_json(best->watts);
    j["joules"] = as_json(best->joules);
  } else {
    j = as_json(best.error());
  }
  j["sources"] = json::array();
  for (const SourceEnergy& energy : report.energy) {
    j["sources"].push_back(source_json(report, energy));
  }
  return j;
}

json transfer_json(const Report& report) {
  if (!report.bytes) return as_json(report.bytes.error());
  const auto best = best_of(report.energy);
  const Measured<double> watts = best ? best->watts : Measured<double>{fail(best.error())};
  return {{"bytes", *report.bytes},
          {"from", report.bytes_from},
          {"gbps", as_json(gigabits_per_s(report))},
          {"cpu_s_per_gb", as_json(cpu_s_per_gb(report))},
          {"machine_cpu_s_per_gb", as_json(machine_cpu_s_per_gb(report))},
          {"efficiency_gbps_per_w", as_json(efficiency(report, watts))}};
}

}  // namespace

json as_json(const Unmeasured& why) {
  return {{"unmeasured", why.reason}, {"remedy", why.remedy}};
}

json as_json(const Report& report) {
  json j;
  j["command"] = report.command;
  j["exit_status"] = report.exit_status;
  j["signal"] = report.signal == 0 ? json(nullptr) : json(report.signal);
  j["seconds"] = report.seconds;
  j["meter"] = {
      {"interval_s", report.interval_s}, {"looks", report.looks}, {"cpu_s", report.meter_cpu_s}};
  if (report.samples_end) j["meter"]["samples"] = as_json(*report.samples_end);
  j["cpu"] = {{"user_s", report.usage.user_s},
              {"system_s", report.usage.system_s},
              {"total_s", report.usage.cpu_s()},
              {"of_threads_not_seen_s", unseen_cpu_s(report)}};
  j["context_switches"] = {{"voluntary", report.usage.voluntary},
                           {"involuntary", report.usage.involuntary}};
  j["still_running"] = report.survivors;
  j["threads"] = json::array();
  for (const ThreadUsage& thread : report.threads) j["threads"].push_back(thread_json(thread));
  j["memory"]["peak_bytes"] = as_json(report.peak_bytes);
  j["memory"]["peak_sum_bytes"] =
      report.peak_sum_bytes > 0
          ? json(report.peak_sum_bytes)
          : as_json(Unmeasured{"no look saw a process with memory", "a smaller --interval"});
  j["machine"] = report.machine ? machine_json(*report.machine) : as_json(report.machine.error());
  j["energy"] = energy_json(report);
  j["transfer"] = transfer_json(report);
  return j;
}

}  // namespace weft::measure
