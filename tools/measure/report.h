// What `weft measure` found out about a command, and how it is printed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "measure/energy_meter.h"
#include "measure/machine_cpu.h"
#include "measure/measured.h"
#include "measure/process_tree.h"

namespace weft::measure {

struct Report {
  std::vector<std::string> command;
  int exit_status = 0;  // as a shell has it
  int signal = 0;       // that ended it; 0: none did
  double seconds = 0;
  uint64_t looks = 0;                     // how often the meter looked
  double interval_s = 0;                  // asked for
  std::optional<Unmeasured> samples_end;  // why they end before the command does
  double meter_cpu_s = 0;                 // what the meter itself used
  ProcessUsage usage;
  std::vector<std::string> survivors;  // processes that still ran when the first one had ended
  std::vector<ThreadUsage> threads;
  Measured<uint64_t> peak_bytes = fail(Unmeasured{});
  uint64_t peak_sum_bytes = 0;
  Measured<MachineCpu> machine = fail(Unmeasured{});
  std::vector<SourceEnergy> energy;
  Measured<uint64_t> bytes = fail(Unmeasured{});
  std::string bytes_from;  // "--bytes", "eth0:rx"
};

// Figures that follow from the others.
Measured<double> gigabits_per_s(const Report& report);
// The paper's normalised power efficiency, E = BW / P: Gb/s for each W.
Measured<double> efficiency(const Report& report, const Measured<double>& watts);
// CPU seconds of the command, for 10^9 bytes.
Measured<double> cpu_s_per_gb(const Report& report);
// The same of all that the CPUs of the machine did meanwhile, the kernel's interrupts included.
Measured<double> machine_cpu_s_per_gb(const Report& report);
// CPU of threads that no look saw, or saw end.
double unseen_cpu_s(const Report& report);

std::string as_text(const Report& report);
nlohmann::json as_json(const Report& report);

nlohmann::json as_json(const Unmeasured& why);
template <class T>
nlohmann::json as_json(const Measured<T>& value) {
  return value ? nlohmann::json(*value) : as_json(value.error());
}

}  // namespace weft::measure
