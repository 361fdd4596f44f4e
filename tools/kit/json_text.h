// JSON that is printed. Names of files, programs and options need not be UTF-8, and nlohmann throws
// for such bytes unless it is told to replace them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace weft::kit {

// On one line; `indent` spaces a level otherwise.
inline std::string text_of(const nlohmann::json& document, int indent = -1) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weft::kit
