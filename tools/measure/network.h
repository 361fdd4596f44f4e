// The bytes that an interface has moved, /proc/net/dev of this process's network namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "measure/measured.h"

namespace weft::measure {

struct Interface {
  std::string name;
  bool sent = false;  // count what leaves, instead of what arrives
};

// "eth0", "eth0:rx", "eth0:tx"; the first two mean the same.
std::optional<Interface> parse_interface(const std::string& text);

// With all headers from that of Ethernet on.
Measured<uint64_t> interface_bytes(const std::string& proc, const Interface& interface);

}  // namespace weft::measure
