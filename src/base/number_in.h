// Numbers that stand in text: of options, of files of the kernel's, of what a peer says.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace weft {

// The integer that all of `text` is. Nothing where it is none, or T cannot hold it.
template <class T>
std::optional<T> number_in(std::string_view text, int base = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

}  // namespace weft
