// How much of a channel's data may be under way, and how fast it leaves, as far as the network is
// concerned (spec/wdp-rd 5.4). Local policy: the peer hears nothing of it. What the receiver has
// room for is another limit.
#pragma once

#include <cstddef>

#include "base/time.h"
#include "wdp/rd_limits.h"

namespace weft::wdp {

// One for each channel. All sizes in bytes as a window counts them: of the datagram, and
// kDatagramOverhead.
class Congestion {
 public:
  // A datagram of Ethernet, in which windows begin.
  static constexpr size_t kUnit = 1472 + kDatagramOverhead;
  static constexpr size_t kFirst = 32 * kUnit;
  static constexpr Duration kMostPause = std::chrono::hours{1};

  virtual ~Congestion() = default;
  // A datagram of so many bytes has come. Several messages in it are one datagram to the network,
  // though the receiver counts each.
  virtual void carried(size_t datagram) = 0;
  // A datagram that was sent at `sent` has come. `limited`: the window was what held the sender
  // back.
  virtual void acknowledged(size_t bytes, Time sent, bool limited, Duration least_round_trip,
                            Duration latest_round_trip, Time now) = 0;
  // One that was sent at `sent` is lost, or was marked on its way (RFC 9002 7.1).
  virtual void congested(Time sent, Time now) = 0;
  // Nothing at all comes through any more.
  virtual void collapsed(Time now) = 0;
  // Bytes that may be under way.
  virtual size_t window() const = 0;
  // A datagram as it leaves: its own bytes, and what it takes of the window.
  struct Departure {
    size_t bytes;
    size_t weight;
  };
  // How long nothing is to follow it, kMostPause at most. `round_trip`: smoothed; 0 while none is
  // known.
  virtual Duration pause(const Departure& datagram, Duration round_trip) const = 0;
};

}  // namespace weft::wdp
