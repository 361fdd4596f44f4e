// Numbers that must not be mixed: StrongNumber<Tag, Rep> is a number that only compares with, and
// converts to, its own kind.
#pragma once

#include <compare>
#include <functional>

namespace weft {

template <class Tag, class Rep>
class StrongNumber {
 public:
  using rep = Rep;
  constexpr StrongNumber() = default;
  constexpr explicit StrongNumber(Rep v) : v_(v) {}
  constexpr Rep value() const { return v_; }
  friend constexpr auto operator<=>(StrongNumber, StrongNumber) = default;

 private:
  Rep v_{};
};

}  // namespace weft

template <class Tag, class Rep>
struct std::hash<weft::StrongNumber<Tag, Rep>> {
  size_t operator()(weft::StrongNumber<Tag, Rep> n) const noexcept {
    return std::hash<Rep>{}(n.value());
  }
};
