// Virtual time. Moves only when a Scheduler runs events; starts at 1 us, because code may take 0
// for "no time".
#pragma once

#include "base/time.h"

namespace weft::sim {

class Clock {
 public:
  Time now() const { return now_; }

 private:
  friend class Scheduler;
  Time now_ = Time::from_ns(1000);
};

}  // namespace weft::sim
