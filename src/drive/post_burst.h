// Is the program in the middle of many posts? Then nobody waits for the one at hand, and it may
// share a system call with those behind it (docs/design/19).
#pragma once

#include <cstdint>

namespace weft::drive {

class PostBurst {
 public:
  // Posts since the program's last poll that go out at once.
  static constexpr uint32_t kAlone = 4;

  // The program posts once more, and has polled so often by now.
  bool posted(uint64_t polls) {
    if (polls != polls_) {
      polls_ = polls;
      posts_ = 0;
    }
    if (posts_ <= kAlone) ++posts_;
    return posts_ > kAlone;
  }

 private:
  uint64_t polls_ = 0;
  uint32_t posts_ = 0;
};

}  // namespace weft::drive
