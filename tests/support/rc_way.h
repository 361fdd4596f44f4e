// What carries RC in this test run: the option rc.
#pragma once

#include <cstdlib>
#include <cstring>

namespace weft::test {

// Do RC queue pairs connect without sockets of their own?
inline bool rc_by_udp() {
  const char* const way = std::getenv("WEFT_RC");
  return way != nullptr && std::strcmp(way, "udp") == 0;
}

}  // namespace weft::test
