#pragma once

#include <nlohmann/json.hpp>

namespace weft::kit {

// A figure that may be missing, as JSON has it.
nlohmann::json or_null(const auto& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace weft::kit
