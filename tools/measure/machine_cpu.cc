#include "measure/machine_cpu.h"

#include <unistd.h>

#include <array>
#include <sstream>

#include "measure/files.h"

namespace weft::measure {

MachineCpu operator-(const MachineCpu& a, const MachineCpu& b) {
  return {.cpus = a.cpus,
          .user_s = a.user_s - b.user_s,
          .system_s = a.system_s - b.system_s,
          .idle_s = a.idle_s - b.idle_s,
          .irq_s = a.irq_s - b.irq_s,
          .softirq_s = a.softirq_s - b.softirq_s,
          .steal_s = a.steal_s - b.steal_s,
          .switches = a.switches - b.switches};
}

Measured<MachineCpu> parse_machine_cpu(const std::string& text, double ticks) {
  MachineCpu cpu;
  bool found = false;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words{line};
    std::string name;
    words >> name;
    if (name == "ctxt") words >> cpu.switches;
    if (name.starts_with("cpu") && name != "cpu") ++cpu.cpus;
    if (name != "cpu") continue;
    // user nice system idle iowait irq softirq steal; guests' time is in the first two once more.
    std::array<double, 8> t{};
    for (double& value : t) words >> value;
    found = !words.fail();
    cpu.user_s = (t[0] + t[1]) / ticks;
    cpu.system_s = t[2] / ticks;
    cpu.idle_s = (t[3] + t[4]) / ticks;
    cpu.irq_s = t[5] / ticks;
    cpu.softirq_s = t[6] / ticks;
    cpu.steal_s = t[7] / ticks;
  }
  if (found) return cpu;
  return fail(Unmeasured{"/proc/stat does not have the eight times of CPU",
                         "run where /proc is the kernel's own"});
}

Measured<MachineCpu> read_machine_cpu(const std::string& proc) {
  const auto text = read_text(proc + "/stat");
  if (!text) return fail(Unmeasured{text.error().what, "mount /proc"});
  return parse_machine_cpu(*text, static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace weft::measure
