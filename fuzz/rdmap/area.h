// A piece of a program's memory with guard bytes on both sides. What may be in it is the owner's to
// say; the guards stay as they are, whatever the peer sends.
#pragma once

#include "base/types.h"
#include "fuzz/support/check.h"
#include "tests/support/hex.h"

namespace weft::fuzz {

class Area {
 public:
  static constexpr size_t kGuard = 64;
  static constexpr size_t kMost = 32 * 1024;

  explicit Area(size_t n) : memory_(source().begin(), source().begin() + total(n)) {}

  Stag stag;
  std::byte* data() { return memory_.data() + kGuard; }
  size_t size() const { return memory_.size() - 2 * kGuard; }

  bool guards_intact() const {
    return same_as_made(0, kGuard) && same_as_made(kGuard + size(), memory_.size());
  }
  // Nothing from byte `from` on was ever written.
  bool untouched(size_t from = 0) const { return same_as_made(kGuard + from, memory_.size()); }
  Bytes bytes() const { return Bytes{memory_}.subspan(kGuard, size()); }

 private:
  static ptrdiff_t total(size_t n) { return static_cast<ptrdiff_t>(n + 2 * kGuard); }
  // Made once: an input runs in a few microseconds.
  static const test::Buffer& source() {
    static const test::Buffer made = test::pattern(kMost + 2 * kGuard, 1);
    return made;
  }
  bool same_as_made(size_t from, size_t to) const {
    return same(Bytes{memory_}.subspan(from, to - from), Bytes{source()}.subspan(from, to - from));
  }

  test::Buffer memory_;
};

}  // namespace weft::fuzz
