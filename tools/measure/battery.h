// What a discharging battery gives, /sys/class/power_supply: the power of the whole machine.
#pragma once

#include <string>

#include "measure/energy.h"

namespace weft::measure {

// The power that the batteries below `sysfs` give together. Unmeasured when none gives any, and
// when one is being charged: then the machine lives on something else.
Measured<double> battery_watts(const std::string& sysfs);

OpenSource open_battery(const std::string& sysfs);

}  // namespace weft::measure
