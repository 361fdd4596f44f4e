// Keeps order among what takes a receive (spec/wdp-uc 3.3): whatever stands behind a PSN gap
// waits until the gap is filled or given up. Given up it is when 128 things or 1 MiB wait, or when
// it is 250 us old: the network does not deliver later than that what it has not lost.
//
// What waits:
//   Sends that would open a new message, with their payload. Segments of the Send that is open
//     are placed at once; they do no harm to anything.
//   Read Requests: a Read sees what Writes before it wrote, unless that is lost.
//   The news that a Write with immediate is complete. Its bytes are placed as they come; but were
//     it to take its receive at once, it would take that of an older Send whose datagrams it has
//     overtaken.
#pragma once

#include <optional>
#include <vector>

#include "base/fixed_ring.h"
#include "wdp/limits.h"
#include "wdp/psn_window.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

struct Held {
  Psn psn;
  Time since;
  wire::WdpData header;
  std::vector<std::byte> payload;  // a Write with immediate is complete and has none
};

class Resequencer {
 public:
  explicit Resequencer(std::optional<Psn> first) : started_(first.has_value()) {
    if (first) expected_ = *first;
  }

  // Nothing before it is missing that could still come.
  bool in_order(Psn psn) const { return !started_ || distance(expected_, psn) <= 0; }
  // It was waited for, in vain.
  bool given_up(Psn psn) const { return started_ && distance(expected_, psn) < 0; }
  // This one came, and `window` knows of it.
  void arrived(Psn psn, const PsnWindow& window, Time now) {
    if (started_ && psn == expected_ && psn == window.highest() && samples_.empty()) {
      expected_ = next(psn);
    } else {
      arrived_with_gaps(psn, window, now);
    }
  }
  void hold(Held held);
  // Something up to `last` that has not come could still come.
  bool misses(Psn last, const PsnWindow& window);
  // The next that need not wait any longer, in the order of PSNs.
  std::optional<Held> take_due(const PsnWindow& window);

  // When something waits: when it is due at the latest. See tick().
  Time deadline() const;
  void tick(const PsnWindow& window, Time now);
  // All that waits is due. The peer begins anew, at the next datagram that arrives.
  void give_up_all();
  void restart() { started_ = false; }

  size_t holding() const { return held_.size(); }
  void trim() {
    if (held_.empty()) held_ = {};
  }

 private:
  // The highest PSN at some time: gaps below were open then.
  struct Sample {
    Time at;
    Psn highest;
  };
  static constexpr Duration kSampleEvery = kHoldFor / 8;

  bool full() const { return held_.size() > kMostHeld || bytes_ > kMostHeldBytes; }
  void arrived_with_gaps(Psn psn, const PsnWindow& window, Time now);
  void give_up_to(Psn psn);
  void skip_seen(const PsnWindow& window);

  bool started_;
  Psn expected_;            // the first that has not come and is waited for
  std::vector<Held> held_;  // by PSN
  size_t bytes_ = 0;
  FixedRing<Sample> samples_{16};
};

}  // namespace weft::wdp
