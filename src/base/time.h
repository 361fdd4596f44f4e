// Time as the core sees it: nanoseconds on a clock that only moves forward. The core is told the
// time; it never asks for it.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace weft {

using Duration = std::chrono::nanoseconds;

class Time {
 public:
  constexpr Time() = default;
  static constexpr Time from_ns(int64_t ns) {
    Time t;
    t.ns_ = ns;
    return t;
  }
  static constexpr Time never() { return from_ns(INT64_MAX); }
  constexpr int64_t ns() const { return ns_; }
  constexpr bool is_never() const { return ns_ == INT64_MAX; }
  friend constexpr auto operator<=>(Time, Time) = default;
  // A sum that the clock will not reach is never.
  friend constexpr Time operator+(Time t, Duration d) {
    int64_t sum = 0;
    if (t.is_never() || __builtin_add_overflow(t.ns_, d.count(), &sum)) return never();
    return from_ns(sum);
  }
  friend constexpr Time operator-(Time t, Duration d) { return from_ns(t.ns_ - d.count()); }
  friend constexpr Duration operator-(Time a, Time b) { return Duration{a.ns_ - b.ns_}; }

 private:
  int64_t ns_ = 0;
};

}  // namespace weft
