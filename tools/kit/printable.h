// Words of others on a terminal, which obeys control characters.
#pragma once

#include <string>

namespace weft::kit {

// The text with '?' for each control character: those of ASCII, and those that UTF-8 writes as two
// bytes (U+0080 to U+009F).
std::string printable(std::string text);

}  // namespace weft::kit
