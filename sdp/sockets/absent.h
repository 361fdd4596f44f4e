// Where nobody answered by SDP a moment ago: the next connections there go by TCP at once.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <mutex>

#include "sdp/loop/handlers.h"
#include "sdp/stat/layout.h"

namespace weft::sdp {

class Absent {
 public:
  using Clock = std::chrono::steady_clock;
  // A server that learns SDP is found again after so long.
  static constexpr std::chrono::seconds kRemembered{1};

  bool knows(const StatName& place, Clock::time_point now);
  void note(const StatName& place, Clock::time_point now);

 private:
  using Key = std::pair<std::array<uint8_t, 16>, uint16_t>;
  static constexpr size_t kMost = 1024;

  Mutex lock_;
  std::map<Key, Clock::time_point> until_;
};

}  // namespace weft::sdp
