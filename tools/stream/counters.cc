#include "stream/counters.h"

#include <string>
#include <string_view>

#include "observe/counter_reader.h"
#include "port/faults.h"
#include "stats/table.h"

namespace weft::stream {
namespace {

// 0 as well where nothing is counted, by WEFT_COUNTERS.
uint64_t counter(const observe::Snapshot& seen, std::string_view name) {
  for (size_t i = 0; i < seen.device.size(); ++i) {
    if (stats::table()[i].name() == name) return seen.device[i];
  }
  return 0;
}

}  // namespace

void count_own_faults() {
  static stats::DeviceCounters counters;
  port::faults::count_in(&counters);
}

Faults faults_so_far() {
  if (const stats::DeviceCounters* own = port::faults::counts_in()) {
    const auto lost = static_cast<size_t>(stats::InjectedFault::lost_out);
    return {.lost = own->fault_injected[lost].value(), .control = 0};
  }
  const auto seen = observe::read_process(0);
  if (!seen.ok()) return {};
  const uint64_t all = counter(*seen, "fault_injected.datagrams_out");
  return {.lost = counter(*seen, "fault_injected.lost_out"),
          .control = all > 0 ? all - counter(*seen, "fpdus_sent") : 0};
}

Absent absent_so_far() {
  const auto seen = observe::read_process(0);
  if (!seen.ok()) return {};
  return {.lost = counter(*seen, "datagrams_lost"), .overruns = counter(*seen, "socket_overruns")};
}

}  // namespace weft::stream
