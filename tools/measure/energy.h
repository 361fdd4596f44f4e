// Energy, wherever a machine tells it. Each kind of place is a source of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/measured.h"

namespace weft::measure {

// What a figure is of. package and dram are beside each other and add up; core and uncore lie in
// package; platform and machine hold all of them.
enum class Part : uint8_t { package, dram, core, uncore, platform, machine, other };
const char* name_of(Part part);

struct DomainEnergy {
  std::string name;  // as the source calls it: "package-0"
  Part part = Part::other;
  Measured<double> joules;
};

// Seconds of a clock that also counts while the machine is suspended. Tests have their own.
using Clock = std::function<double()>;
double boot_time();

class EnergySource {
 public:
  EnergySource() = default;
  EnergySource(const EnergySource&) = delete;
  EnergySource& operator=(const EnergySource&) = delete;
  virtual ~EnergySource() = default;

  virtual const char* name() const = 0;
  // Takes a reading. Energy counts from the first one on.
  virtual void sample(const Clock& clock) = 0;
  // Begins anew: the next reading is the first one.
  virtual void reset() = 0;
  // From the first reading to the last one.
  virtual std::vector<DomainEnergy> domains() const = 0;
  // How long that was.
  virtual double seconds() const = 0;
  // Of the parts that count (see total_of), between the last two readings, or as the last one says
  // it.
  virtual Measured<double> watts() const = 0;
};

using OpenSource = Measured<std::unique_ptr<EnergySource>>;

// What a source says as a whole: package and DRAM where it knows them, else the machine.
struct Total {
  Measured<double> value;
  std::string of;  // "package and DRAM", "package", "machine"
};
// The DRAM counts when all of it is measured; a package that is not measured leaves no total.
Total total_of(const std::vector<DomainEnergy>& domains);

}  // namespace weft::measure
