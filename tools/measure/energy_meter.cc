#include "measure/energy_meter.h"

#include <array>
#include <span>

#include "measure/battery.h"
#include "measure/ipmi.h"
#include "measure/perf_power.h"
#include "measure/powercap.h"

namespace weft::measure {
namespace {

// RAPL first, as the paper has it: it is of the processor and its memory alone.
constexpr std::array kInTurn = {EnergyChoice::powercap, EnergyChoice::perf, EnergyChoice::battery,
                                EnergyChoice::ipmi};

}  // namespace

EnergyMeter::EnergyMeter(const std::vector<EnergyChoice>& choice, const Roots& roots, Clock clock)
    : clock_(std::move(clock)) {
  for (const EnergyChoice wanted : choice) {
    if (wanted != EnergyChoice::first && wanted != EnergyChoice::first_quick) {
      open(wanted, roots);
      continue;
    }
    for (const EnergyChoice next : kInTurn) {
      if (!sources_.empty()) break;
      if (next == EnergyChoice::ipmi && wanted == EnergyChoice::first_quick) continue;
      open(next, roots);
    }
  }
}

void EnergyMeter::open(EnergyChoice choice, const Roots& roots) {
  const auto keep = [this](const char* name, OpenSource opened) {
    if (opened) {
      sources_.push_back(std::move(*opened));
    } else {
      refused_.push_back({name, opened.error()});
    }
  };
  switch (choice) {
    case EnergyChoice::powercap:
      return keep("powercap", open_powercap(roots.sysfs, roots.proc));
    case EnergyChoice::perf:
      return keep("perf", open_perf_power(roots.sysfs, roots.proc));
    case EnergyChoice::ipmi:
      return keep("ipmi", open_ipmi());
    case EnergyChoice::battery:
      return keep("battery", open_battery(roots.sysfs));
    case EnergyChoice::first:
    case EnergyChoice::first_quick:
      return;
  }
}

void EnergyMeter::begin() {
  for (const auto& source : sources_) source->reset();
  sample();
}

void EnergyMeter::sample() {
  for (const auto& source : sources_) source->sample(clock_);
}

std::vector<SourceEnergy> EnergyMeter::results() const {
  std::vector<SourceEnergy> results;
  for (const auto& source : sources_) {
    auto domains = source->domains();
    Total total = total_of(domains);
    Measured<double> watts = total.value;
    const double seconds = source->seconds();
    if (watts && seconds > 0) watts = *watts / seconds;
    results.push_back({.source = source->name(),
                       .of = std::move(total.of),
                       .joules = std::move(total.value),
                       .seconds = seconds,
                       .watts = std::move(watts),
                       .domains = std::move(domains)});
  }
  for (const Refused& refused : refused_) {
    results.push_back({.source = refused.source,
                       .of = "",
                       .joules = fail(refused.why),
                       .seconds = 0,
                       .watts = fail(refused.why),
                       .domains = {}});
  }
  return results;
}

Measured<double> EnergyMeter::watts() const {
  if (!sources_.empty()) return sources_.front()->watts();
  return fail(Unmeasured{"no source of energy can be read", "see the report"});
}

Measured<SourceEnergy> best_of(const std::vector<SourceEnergy>& results) {
  Unmeasured why;
  for (const SourceEnergy& result : results) {
    if (result.watts) return result;
    const Unmeasured& one = result.watts.error();
    why.reason += (why.reason.empty() ? "" : "; ") + result.source + ": " + one.reason;
    if (why.remedy.empty()) why.remedy = one.remedy;
  }
  if (results.empty()) return fail(Unmeasured{"no source of energy was named", "see --energy"});
  return fail(why);
}

}  // namespace weft::measure
