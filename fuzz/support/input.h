// What a stateful target was given, taken from the front. At its end there are zeros, so that every
// prefix of an input is an input, too.
#pragma once

#include "fuzz/support/check.h"

namespace weft::fuzz {

class Input {
 public:
  explicit Input(Bytes bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  size_t size() const { return rest_.size(); }
  uint8_t u8() {
    if (rest_.empty()) return 0;
    const auto v = std::to_integer<uint8_t>(rest_[0]);
    rest_ = rest_.subspan(1);
    return v;
  }
  uint16_t u16() {
    const unsigned high = u8();
    return static_cast<uint16_t>(high << 8 | u8());
  }
  bool flag() { return (u8() & 1) != 0; }
  // At most `n` bytes.
  Bytes take(size_t n) {
    const Bytes taken = rest_.first(std::min(n, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  // One of an enum whose last value is `last`.
  template <class Enum>
  Enum choice(Enum last) {
    return static_cast<Enum>(u8() % (static_cast<unsigned>(last) + 1));
  }

 private:
  Bytes rest_;
};

}  // namespace weft::fuzz
