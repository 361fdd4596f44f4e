// The option --energy of all commands that have a meter.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "measure/energy_meter.h"

namespace weft::measure {

// `without`: what is read where the option is not given.
void add_energy_option(CLI::App& command, std::vector<EnergyChoice>& choice,
                       const std::string& without);

}  // namespace weft::measure
