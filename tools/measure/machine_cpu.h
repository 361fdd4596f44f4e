// What the CPUs of the machine did, /proc/stat: all programs and the kernel together.
#pragma once

#include <cstdint>
#include <string>

#include "measure/measured.h"

namespace weft::measure {

// Seconds of CPU since the machine started, of all CPUs together.
struct MachineCpu {
  unsigned cpus = 0;
  double user_s = 0;  // with that of low priority (nice)
  double system_s = 0;
  double idle_s = 0;  // with that of waiting for disks
  double irq_s = 0;
  double softirq_s = 0;
  double steal_s = 0;  // taken by the host
  double switches = 0;

  double busy_s() const { return user_s + system_s + irq_s + softirq_s; }
  friend MachineCpu operator-(const MachineCpu& a, const MachineCpu& b);
};

Measured<MachineCpu> read_machine_cpu(const std::string& proc);
// `ticks` a second, of the text of /proc/stat.
Measured<MachineCpu> parse_machine_cpu(const std::string& text, double ticks);

}  // namespace weft::measure
