// What carries RC and UD in this test run: the options rc and ud.
#pragma once

#include <cstdlib>
#include <cstring>

namespace weft::test {

// Do RC queue pairs connect without sockets of their own?
inline bool rc_by_udp() {
  const char* const way = std::getenv("WEFT_RC");
  return way != nullptr && std::strcmp(way, "udp") == 0;
}

// Do messages of UD go by channels, which lose nothing?
inline bool ud_by_channels() {
  const char* const way = std::getenv("WEFT_UD");
  return way != nullptr && std::strcmp(way, "reliable") == 0;
}

}  // namespace weft::test
