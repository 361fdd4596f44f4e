// How long a call may wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace weft::rsockets {

// Nothing: as long as it takes.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

inline Deadline after(const std::optional<std::chrono::seconds>& most) {
  return most ? Deadline{std::chrono::steady_clock::now() + *most} : std::nullopt;
}

// What is left, in ms and rounded up, as poll(2) takes it.
inline int left_of(const Deadline& until) {
  if (!until) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now())
          .count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 1'000'000'000));
}

}  // namespace weft::rsockets
