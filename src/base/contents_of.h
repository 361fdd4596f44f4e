// Small files of text, such as those of /proc.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace weft {

// All of the file. Empty where it cannot be read.
inline std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace weft
