// The worked examples of docs/spec, read from the pages, so that what a reader sees is what was
// tested.
//
// An example is a fenced block of hexadecimal text that begins with a line `# NAME`.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/hex.h"

namespace weft::test {

// The bytes of the example with this name, from whichever page has it. Throws where no page has
// it, or more than one.
Buffer example(std::string_view name);

// The 64 bytes that E5 and E6 carry, as rping makes them.
inline std::string rping_payload() {
  std::string text = "rdma-ping-0: ";
  for (size_t i = 0; text.size() < 63; ++i) text += static_cast<char>('A' + i % 26);
  text += '\0';
  return text;
}

}  // namespace weft::test
