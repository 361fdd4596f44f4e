// Where nobody answered by SDP a moment ago: the next connections there go by TCP at once. A place
// that cost time is asked more and more rarely, so that its clients do not wait each second.
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
  // The same where asking costs time, or troubles somebody else: twice as long each time.
  static constexpr std::chrono::seconds kLongest{64};

  bool knows(const StatName& place, Clock::time_point now);
  // `why`: what asking came to.
  void note(const StatName& place, Fallback why, Clock::time_point now);
  // It answered.
  void forget(const StatName& place);

 private:
  using Key = std::pair<std::array<uint8_t, 16>, uint16_t>;
  struct Record {
    std::chrono::seconds remembered{};
    Clock::time_point until;
  };
  static constexpr size_t kMost = 1024;

  Mutex lock_;
  std::map<Key, Record> records_;
};

}  // namespace weft::sdp
