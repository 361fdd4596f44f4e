// Thresholds that variables of the environment set: a number of bytes, or 0 for never. Type T has
// kNever, kLeast, `bytes`, and parse().
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace weft::sdp {

template <class T>
std::optional<T> parse_bytes(std::string_view text) {
  T threshold;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, threshold.bytes);
  if (error != std::errc{} || behind != end) return std::nullopt;
  if (threshold.bytes != T::kNever && threshold.bytes < T::kLeast) return std::nullopt;
  return threshold;
}

// What the environment of the process says. What is not understood is as if it were not there.
template <class T>
T threshold_of_process(const char* variable) {
  const char* const text = ::secure_getenv(variable);
  return text == nullptr ? T{} : T::parse(text).value_or(T{});
}

// A sentence about what is not understood: "is not " `wanted`.
template <class T>
std::optional<std::string> wrong_in_process(const char* variable, std::string_view wanted) {
  const char* const text = ::secure_getenv(variable);
  if (text == nullptr || T::parse(text)) return std::nullopt;
  std::string sentence{variable};
  sentence.append(": '").append(text).append("' is not ").append(wanted);
  return sentence;
}

}  // namespace weft::sdp
