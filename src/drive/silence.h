// Peers that answer nothing: the user is told, once for each connection, for such a connection
// looks as if it were slow, and it takes minutes until it ends. Who has a connection looks at it by
// a deadline, kSilence after something was sent, and not on the way of the bytes.
#pragma once

#include <array>
#include <atomic>
#include <chrono>

#include "engine/event_handler.h"
#include "port/address.h"
#include "stats/reasons.h"

namespace weft::drive {

using engine::Token;

// From what was sent until somebody looks whether it was answered.
inline constexpr Duration kSilence = std::chrono::seconds{3};
// TCP has sent the oldest unacknowledged segment again so often, with nothing of it acknowledged:
// 1.4 s or more. A peer that is merely stopped acknowledges, for its kernel does.
inline constexpr unsigned kSilentAfterResends = 3;

// Which peers have been told of lately. One that a thousand connections lead to deserves one
// sentence. Any thread; never waits.
class SilentPeers {
 public:
  static constexpr Duration kAgain = std::chrono::minutes{1};
  static constexpr size_t kMost = 16;  // different peers in that time

  // Is this one worth a warning? Then it counts as told of.
  bool worth_a_warning(const Gid& peer, Time now);

 private:
  struct Told {
    Gid peer;
    Time at = Time::from_ns(INT64_MIN / 2);
  };
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::array<Told, kMost> told_;
};

// Counts the connection, and tells the user of its peer: at level warn, or info where this was said
// of that peer a moment ago.
void report_silence(Token& token, stats::Silence what, const port::Address& peer);

}  // namespace weft::drive
