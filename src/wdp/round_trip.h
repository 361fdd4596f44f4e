// The round trip of a channel (spec/wdp-rd 5.1): RFC 9002 section 5, without packet number spaces.
#pragma once

#include <algorithm>

#include "wdp/rd_limits.h"

namespace weft::wdp {

// A value type. Not thread-safe.
class RoundTrip {
 public:
  // Of a datagram that was sent once and is acknowledged now: `since` it was sent; the peer says
  // that it waited for `ack_delay` of it.
  void sample(Duration since, Duration ack_delay) {
    latest_ = std::max(since, Duration{1});
    if (!known()) {
      least_ = smoothed_ = latest_;
      variation_ = latest_ / 2;
      return;
    }
    // RFC 9002 5.2: "min_rtt MUST be set to the lesser of min_rtt and latest_rtt", without the
    // peer's word.
    least_ = std::min(least_, latest_);
    // RFC 9002 5.3: "MUST NOT subtract the acknowledgment delay from the RTT sample if the
    // resulting value is smaller than the min_rtt."
    Duration adjusted = latest_;
    ack_delay = std::min(ack_delay, kAckDelay);
    if (latest_ >= least_ + ack_delay) adjusted = latest_ - ack_delay;
    const Duration apart = smoothed_ > adjusted ? smoothed_ - adjusted : adjusted - smoothed_;
    variation_ = (3 * variation_ + apart) / 4;
    smoothed_ = (7 * smoothed_ + adjusted) / 8;
  }

  bool known() const { return least_ > Duration{0}; }
  Duration latest() const { return latest_; }
  Duration least() const { return least_; }
  Duration smoothed() const { return smoothed_; }

  // RFC 9002 6.1.2: how long after it was sent a datagram is lost, if a later one has come. 5/4
  // instead of 9/8.
  Duration loss_delay() const {
    return std::max(std::max(latest_, smoothed_) * 5 / 4, kLeastLossDelay);
  }
  // RFC 9002 6.2.1: how long nothing may come before the sender asks.
  Duration probe_pause() const {
    return smoothed_ + std::max(4 * variation_, kProbeGranularity) + kAckDelay;
  }

 private:
  Duration latest_{0};
  Duration least_{0};
  Duration smoothed_ = kFirstRoundTrip;
  Duration variation_ = kFirstRoundTrip / 2;
};

}  // namespace weft::wdp
