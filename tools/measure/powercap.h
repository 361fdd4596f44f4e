// RAPL through the kernel's powercap files: Documentation/power/powercap of the kernel.
#pragma once

#include <string>

#include "measure/energy.h"

namespace weft::measure {

// Below `sysfs`, mostly "/sys". Unmeasured when no package can be read.
OpenSource open_powercap(const std::string& sysfs, const std::string& proc);

}  // namespace weft::measure
