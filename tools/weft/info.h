// What `weft info` prints: the device, and the table of options.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "config/options.h"
#include "device/device.h"

namespace weft::tools {

std::string device_as_text(const device::Device& device, const config::Options& options);
nlohmann::json device_as_json(const device::Device& device, const config::Options& options);

// Each option with its default and its value in `options`.
std::string options_as_text(const config::Options& options);
nlohmann::json options_as_json(const config::Options& options);
// docs/options.md: the table without values, the same on every machine.
std::string options_as_markdown();

}  // namespace weft::tools
