// The power of the whole machine, as its management controller says it: `ipmitool dcmi power
// reading`.
#pragma once

#include <string>
#include <vector>

#include "measure/energy.h"

namespace weft::measure {

// The watts in what that command prints.
Measured<double> dcmi_watts(const std::string& output);

// Runs a program of PATH for at most `seconds`, and gives what it printed.
Measured<std::string> output_of(const std::vector<std::string>& command, double seconds);

OpenSource open_ipmi();

}  // namespace weft::measure
