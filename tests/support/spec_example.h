// The worked examples of docs/spec, read from the pages, so that what a reader sees is what was
// tested.
//
// An example is a fenced block of hexadecimal text that begins with a line `# NAME`. A line
// `... N bytes` stands for zeros up to N bytes in all. What follows `=`, to the end of the block,
// are the words that weft has for these bytes. A block that is marked as text is something else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/hex.h"

namespace weft::test {

struct SpecExample {
  std::string name;
  Buffer bytes;
  std::string words;  // with single blanks; empty where the page has none
};

// All on one page, such as "examples-wdp.md". Throws where there is no such page.
std::vector<SpecExample> examples_on(std::string_view page);

// The bytes of the example with this name, from whichever page has it. Throws where no page has
// it, or more than one.
Buffer example(std::string_view name);

// The lines behind the name of a block that is marked as text.
std::string example_text(std::string_view name);

// The 64 bytes that E5 and E6 carry, as rping makes them.
inline std::string rping_payload() {
  std::string text = "rdma-ping-0: ";
  for (size_t i = 0; text.size() < 63; ++i) text += static_cast<char>('A' + i % 26);
  text += '\0';
  return text;
}

}  // namespace weft::test
