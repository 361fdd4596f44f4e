#include "measure/energy_option.h"

#include <map>

#include "cli/command_line.h"

namespace weft::measure {

void add_energy_option(CLI::App& command, std::vector<EnergyChoice>& choice,
                       const std::string& without) {
  const std::map<std::string, EnergyChoice> names{{"powercap", EnergyChoice::powercap},
                                                  {"perf", EnergyChoice::perf},
                                                  {"battery", EnergyChoice::battery},
                                                  {"ipmi", EnergyChoice::ipmi}};
  command
      .add_option("--energy", choice,
                  "Where to read energy: powercap, perf, battery, ipmi, or several of them; " +
                      without + " when not given")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(cli::one_of(names));
}

}  // namespace weft::measure
