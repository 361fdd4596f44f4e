// A small ring, for tests of it.
#pragma once

#include <unistd.h>

#include <string>

#include "stream/ring.h"

namespace weft::stream {

inline RingSpec spec_of(const std::string& name, bool landing) {
  return {.name = name,
          .shape = {.format = Format::raw, .payload = 24},
          .streams = 2,
          .blocks = 4,
          .packets_per_block = 8,
          .slot_bytes = 48,
          .landing = landing};
}

inline std::string own_name(const char* what) {
  return "weft-test-" + std::to_string(getpid()) + "-" + what;
}

}  // namespace weft::stream
