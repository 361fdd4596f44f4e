#include "bench/phase_meter.h"

namespace weft::bench {

PhaseMeter::PhaseMeter(const measure::EnergyMeter::Roots& roots,
                       const std::vector<measure::EnergyChoice>& choice)
    : energy_(choice, roots),
      best_(measure::best_of(energy_.results())),
      cpu_begun_(fail(measure::Unmeasured{"it has not begun", "begin it"})) {}

void PhaseMeter::begin() {
  running_ = true;
  cpu_begun_ = measure::read_machine_cpu("/proc");
  energy_.begin();
}

void PhaseMeter::sample() {
  energy_.sample();
}

PhaseOnMachine PhaseMeter::end() {
  PhaseOnMachine phase;
  if (!running_) return phase;
  running_ = false;
  const auto cpu = measure::read_machine_cpu("/proc");
  energy_.sample();
  if (cpu && cpu_begun_) {
    const measure::MachineCpu did = *cpu - *cpu_begun_;
    phase.softirq_s = did.softirq_s;
    phase.steal_s = did.steal_s;
  }
  const auto now = measure::best_of(energy_.results());
  if (now) phase.watts = *now->watts;
  // One phase that was too short says nothing about the others.
  if (now || !best_) best_ = now;
  return phase;
}

}  // namespace weft::bench
