// What the machine did while a case was measured: energy, and time of its CPUs in the kernel.
#pragma once

#include <optional>
#include <vector>

#include "measure/energy_meter.h"
#include "measure/machine_cpu.h"

namespace weft::bench {

// Of the measured phase alone, for both sides together: they share the machine.
struct PhaseOnMachine {
  std::optional<double> watts;
  std::optional<double> softirq_s;
  std::optional<double> steal_s;  // taken by the host
};

// For the process that started both sides, which hears when the phase begins and ends.
class PhaseMeter {
 public:
  // A management controller takes longer for an answer than most phases last: it is read only where
  // it is named.
  explicit PhaseMeter(const measure::EnergyMeter::Roots& roots = {},
                      const std::vector<measure::EnergyChoice>& choice = {
                          measure::EnergyChoice::first_quick});

  void begin();
  // Now and then in between, when wants_samples().
  void sample();
  bool wants_samples() const { return running_ && energy_.readable(); }
  PhaseOnMachine end();

  // What the figures of energy are of, or why there are none; as far as it is known before the
  // first phase or was seen in one.
  const measure::Measured<measure::SourceEnergy>& energy() const { return best_; }

 private:
  measure::EnergyMeter energy_;
  measure::Measured<measure::SourceEnergy> best_;
  measure::Measured<measure::MachineCpu> cpu_begun_;
  bool running_ = false;
};

}  // namespace weft::bench
