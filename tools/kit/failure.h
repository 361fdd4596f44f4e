// What ends a measurement: a sentence for the user.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace weft::kit {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "WHAT: the reason in errno".
inline Failure system_failure(const std::string& what) {
  return Failure{what + ": " + std::strerror(errno)};
}

}  // namespace weft::kit
