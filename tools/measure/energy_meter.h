// The sources of energy that this machine has, read together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "measure/energy.h"

namespace weft::measure {

enum class EnergyChoice : uint8_t {
  first,        // the first of powercap, perf, battery and ipmi that can be read
  first_quick,  // the same without ipmi, whose answers take too long for short measurements
  powercap,
  perf,
  ipmi,
  battery,
};

// What one source measured, or why it did not.
struct SourceEnergy {
  std::string source;  // "powercap"
  std::string of;      // see Total
  Measured<double> joules;
  double seconds = 0;      // from its first reading to its last one
  Measured<double> watts;  // joules over seconds
  std::vector<DomainEnergy> domains;
};

class EnergyMeter {
 public:
  struct Roots {
    std::string sysfs = "/sys";
    std::string proc = "/proc";
  };
  // Opens what is chosen: nothing, one of the two firsts alone, or sources by name.
  EnergyMeter(const std::vector<EnergyChoice>& choice, const Roots& roots, Clock clock = boot_time);

  // Whether there is a source to sample.
  bool readable() const { return !sources_.empty(); }
  // Begins anew, with a first reading.
  void begin();
  void sample();
  // From begin() to the last sample(). Those that can be read come first.
  std::vector<SourceEnergy> results() const;
  // Of the first source, in the last interval.
  Measured<double> watts() const;

 private:
  struct Refused {
    std::string source;
    Unmeasured why;
  };
  void open(EnergyChoice choice, const Roots& roots);

  Clock clock_;
  std::vector<std::unique_ptr<EnergySource>> sources_;
  std::vector<Refused> refused_;
};

// The first of them that is measured, or why none is.
Measured<SourceEnergy> best_of(const std::vector<SourceEnergy>& results);

}  // namespace weft::measure
