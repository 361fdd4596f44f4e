#include "kit/printable.h"

namespace weft::kit {

std::string printable(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < ' ' || byte == 0x7f) text[i] = '?';
    if (byte != 0xc2 || i + 1 == text.size()) continue;
    const auto next = static_cast<unsigned char>(text[i + 1]);
    if (next >= 0x80 && next < 0xa0) text.replace(i, 2, "?");
  }
  return text;
}

}  // namespace weft::kit
