// Small files of /proc and /sys, with the reason when one cannot be read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace weft::measure {

// Why a file says nothing.
struct FileError {
  std::string path;
  int number = 0;    // of errno; 0: it holds something else than what was looked for
  std::string what;  // "PATH: the reason"
};

// Without the line end at its end.
Result<std::string, FileError> read_text(const std::string& path);
// A file that holds one decimal number.
Result<int64_t, FileError> read_number(const std::string& path);

}  // namespace weft::measure
