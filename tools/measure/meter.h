// Measures a command from before its start to after its end.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "measure/energy_meter.h"
#include "measure/network.h"
#include "measure/process_tree.h"
#include "measure/report.h"

namespace weft::measure {

struct MeterSetting {
  std::chrono::milliseconds interval{100};
  std::vector<EnergyChoice> energy{EnergyChoice::first};
  EnergyMeter::Roots roots;
  std::optional<uint64_t> bytes;       // that the command moves, as far as somebody knows
  std::optional<Interface> interface;  // else: that counts them
  std::FILE* samples = nullptr;        // a line of JSON for each interval
};

// In the order begin(), watch(), end(). From the constructor on, the calling process adopts the
// orphans of its descendants.
class Meter {
 public:
  explicit Meter(MeterSetting setting);
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  ~Meter() { stop(); }

  // What the machine did up to here is not the command's.
  void begin();
  // The command runs, in a process that had `had_bytes` of memory before it became the command. A
  // thread looks at it from now on.
  void watch(pid_t root, uint64_t had_bytes);
  // The command has ended, but was not waited for: that is done here. Or it goes on, and is among
  // the survivors. Nothing in the report about the command line.
  Report end();

 private:
  struct Moment {
    double time_s = 0;
    double cpu_s = 0;
    Measured<MachineCpu> machine = fail(Unmeasured{});
    Measured<uint64_t> bytes = fail(Unmeasured{});
  };

  void ask_to_stop();
  void stop();
  void look_on();
  Moment moment() const;
  void look(Moment now);
  void write_sample(const Moment& now);
  void wait_for_orphans();
  void add(const rusage& usage);
  Measured<uint64_t> counted_bytes() const;
  Measured<uint64_t> moved_bytes(const Moment& now) const;
  Measured<uint64_t> peak_bytes() const;

  MeterSetting setting_;
  EnergyMeter energy_;
  ProcessTree tree_;
  pid_t root_ = 0;
  uint64_t had_bytes_ = 0;
  Moment begun_;
  Moment last_;
  double own_cpu_s_ = 0;  // before begin()
  uint64_t looks_ = 0;
  ProcessUsage ended_;  // those that were waited for
  uint64_t ended_peak_bytes_ = 0;
  uint64_t seen_bytes_ = 0;  // by the last look that could count them
  bool bytes_went_back_ = false;
  std::optional<Unmeasured> samples_end_;

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
};

}  // namespace weft::measure
