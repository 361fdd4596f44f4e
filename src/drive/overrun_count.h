// What finds no room in a UDP socket is gone without a word: the kernel counts it, and is asked.
// What the socket counts itself is looked at by the way.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/time.h"
#include "port/datagram_port.h"
#include "stats/blocks.h"

namespace weft::drive {

// Asks a socket now and then what it had no room for, and counts it: as long as something comes,
// and once more behind it. Engine holder only.
class OverrunCount {
 public:
  // Something came in.
  void poll_soon(Time now) {
    if (at_.is_never()) at_ = now + kEvery;
  }
  Time due() const { return at_; }
  void poll_if_due(const port::DatagramPort& port, Time now, stats::EngineCounters& counters) {
    if (now >= at_) poll(port, counters);
  }
  void poll(const port::DatagramPort& port, stats::EngineCounters& counters) {
    at_ = Time::never();
    const port::DatagramPort::Losses losses = port.losses();
    count(losses.overruns, counters);
    counters.gro_switches.add(losses.gro_switches - std::exchange(switches_, losses.gro_switches));
  }
  // The socket says so many since it was made. It wraps.
  void count(uint32_t all, stats::EngineCounters& counters) {
    if (all != counted_) counters.socket_overruns.add(all - std::exchange(counted_, all));
  }

 private:
  static constexpr Duration kEvery = std::chrono::milliseconds{20};
  Time at_ = Time::never();
  uint32_t counted_ = 0;
  uint32_t switches_ = 0;
};

}  // namespace weft::drive
