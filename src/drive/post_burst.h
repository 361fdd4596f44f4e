// Does the program post several requests between two of its polls? Then nobody waits for those
// behind the first one alone, and they may share a system call (docs/design/19).
#pragma once

#include <cstdint>
#include <utility>

namespace weft::drive {

class PostBurst {
 public:
  // The program posts, and has polled so often by now. False for its first request since then.
  bool posted(uint64_t polls) { return std::exchange(polls_, polls) == polls; }

 private:
  uint64_t polls_ = UINT64_MAX;  // at the last post
};

}  // namespace weft::drive
