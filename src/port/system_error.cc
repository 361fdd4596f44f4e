#include "port/system_error.h"

#include <cstring>

namespace weft::port {

std::string SystemError::to_string() const {
  return std::string(call) + ": " + std::strerror(code);
}

}  // namespace weft::port
