// RAPL through the kernel's performance events: the PMU "power", where powercap is not readable.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "measure/energy.h"
#include "port/fd.h"

namespace weft::measure {

struct PowerEvent {
  std::string name;  // "energy-pkg"
  Part part = Part::other;
  uint32_t type = 0;      // perf_event_attr.type
  uint64_t config = 0;    // perf_event_attr.config
  double joules = 0;      // of one count
  std::vector<int> cpus;  // one of each package
};

// What the PMU's files below `sysfs` say.
Measured<std::vector<PowerEvent>> power_events(const std::string& sysfs, const std::string& proc);

// "0,24-26": 0, 24, 25, 26. Empty for what is no such list.
std::vector<int> cpu_list(const std::string& text);
// "event=0x02,umask=1" with the usual places of both. Nothing else is known in this PMU.
Result<uint64_t, Unmeasured> event_config(const std::string& text);

// Opens a counter of a whole CPU; each read(2) of it gives 8 bytes. Not valid: errno says why.
using OpenCounter = std::function<port::Fd(const PowerEvent& event, int cpu)>;
port::Fd open_perf_counter(const PowerEvent& event, int cpu);

OpenSource open_perf_power(const std::string& sysfs, const std::string& proc,
                           const OpenCounter& open = open_perf_counter);

}  // namespace weft::measure
