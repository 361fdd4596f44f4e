// Bytes for tests: written as hexadecimal text, printed as such, and patterns in which no byte
// equals its neighbours.
#pragma once

#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace weft::test {

using Buffer = std::vector<std::byte>;

// "00 22 41|43": blanks, line ends and bars are for the eye. Anything else that is no digit pair
// throws.
inline Buffer from_hex(std::string_view text) {
  const auto digit = [](char c) -> unsigned {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    throw std::invalid_argument(std::string("not a hexadecimal digit: ") + c);
  };
  Buffer bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '|') continue;
    if (i + 1 == text.size()) throw std::invalid_argument("half a byte at the end");
    bytes.push_back(static_cast<std::byte>(digit(c) << 4 | digit(text[i + 1])));
    ++i;
  }
  return bytes;
}

inline std::string to_hex(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    if (!text.empty()) text += ' ';
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

// `n` bytes that differ from their neighbours and do not repeat with a power of two; `seed` tells
// patterns apart.
inline std::byte pattern_byte(size_t i, uint64_t seed) {
  return static_cast<std::byte>((i * 7 + i / 251 + seed * 31) & 0xff);
}
inline Buffer pattern(size_t n, uint64_t seed) {
  Buffer bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = pattern_byte(i, seed);
  return bytes;
}

inline Buffer from_text(std::string_view text) {
  Buffer bytes(text.size());
  for (size_t i = 0; i < text.size(); ++i) bytes[i] = static_cast<std::byte>(text[i]);
  return bytes;
}

inline Buffer join(std::initializer_list<Bytes> pieces) {
  Buffer all;
  for (const Bytes piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

}  // namespace weft::test
