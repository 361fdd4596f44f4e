// What a system call failed with.
#pragma once

#include <string>

namespace weft::port {

// errno of a failed system call, for messages and for the ABI edge.
struct SystemError {
  int code = 0;
  const char* call = "";
  std::string to_string() const;
};

}  // namespace weft::port
