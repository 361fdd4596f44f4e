// Want of memory on purpose, in a program whose operator new asks for it
// (new_that_may_fail.h); in others there always is some.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

namespace weft::test {

// Not thread-safe.
class WantOfMemory {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;
  // Of the allocations inside during(), the one behind the next `n` fails, and `times` - 1 after
  // it.
  static void after(uint64_t n, uint64_t times = 1) {
    left_ = n;
    failures_ = times;
  }
  // Did all of them fail?
  static bool came() { return failures_ == 0; }
  static void end() { left_ = kNever; }

  // Calls code under test. False: it found no memory.
  template <class F>
  static bool during(F&& f) {
    const bool before = std::exchange(on_, true);
    bool there = true;
    try {
      f();
    } catch (const std::bad_alloc&) {
      there = false;
    }
    on_ = before;
    return there;
  }
  // What a test does itself has memory.
  class Spared {
   public:
    Spared() : before_(std::exchange(on_, false)) {}
    ~Spared() { on_ = before_; }
    Spared(const Spared&) = delete;
    Spared& operator=(const Spared&) = delete;

   private:
    const bool before_;
  };

  // For operator new.
  static bool fails() {
    if (!on_ || left_ == kNever || failures_ == 0) return false;
    if (left_ > 0) {
      --left_;
      return false;
    }
    --failures_;
    return true;
  }

 private:
  static inline bool on_ = false;
  static inline uint64_t left_ = kNever;
  static inline uint64_t failures_ = 0;
};

}  // namespace weft::test
