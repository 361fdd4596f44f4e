#include "measure/energy.h"

#include <ctime>
#include <optional>

namespace weft::measure {
namespace {

// Nothing where there is no such part.
std::optional<Measured<double>> sum_of(const std::vector<DomainEnergy>& domains, Part part) {
  std::optional<double> sum;
  for (const DomainEnergy& domain : domains) {
    if (domain.part != part) continue;
    if (!domain.joules) return domain.joules;
    sum = sum.value_or(0) + *domain.joules;
  }
  if (!sum) return std::nullopt;
  return Measured<double>{*sum};
}

}  // namespace

const char* name_of(Part part) {
  switch (part) {
    case Part::package:
      return "package";
    case Part::dram:
      return "dram";
    case Part::core:
      return "core";
    case Part::uncore:
      return "uncore";
    case Part::platform:
      return "platform";
    case Part::machine:
      return "machine";
    case Part::other:
      break;
  }
  return "other";
}

double boot_time() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Total total_of(const std::vector<DomainEnergy>& domains) {
  if (auto package = sum_of(domains, Part::package)) {
    const auto dram = sum_of(domains, Part::dram);
    if (!*package || !dram || !*dram) return {.value = std::move(*package), .of = "package"};
    return {.value = **package + **dram, .of = "package and DRAM"};
  }
  if (auto machine = sum_of(domains, Part::machine)) {
    return {.value = std::move(*machine), .of = "machine"};
  }
  return {.value = fail(Unmeasured{"it has neither a package nor the machine as a whole",
                                   "name another source with --energy"}),
          .of = "nothing"};
}

}  // namespace weft::measure
