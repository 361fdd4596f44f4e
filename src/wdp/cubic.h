// CUBIC (RFC 9438) with the recovery periods of RFC 9002 section 7 and a slow start that ends when
// the round trip grows (the delay rule of RFC 9406).
#pragma once

#include "wdp/congestion.h"

namespace weft::wdp {

class Cubic final : public Congestion {
 public:
  void carried(size_t datagram) override {
    if (datagram > unit_) use_unit(datagram);
  }
  void acknowledged(size_t bytes, Time sent, bool limited, Duration least_round_trip,
                    Duration latest_round_trip, Time now) override;
  void congested(Time sent, Time now) override;
  void collapsed(Time now) override;
  size_t window() const override { return window_; }
  Duration pause(const Departure& datagram, Duration round_trip) const override;
  // Does the window double from one round trip to the next?
  bool in_slow_start() const { return window_ < threshold_; }

 private:
  void avoid(size_t bytes, Duration round_trip, Time now);

  void use_unit(size_t bytes);
  size_t least() const { return 2 * unit_; }

  // Shorter round trips have pauses that are not worth a timer.
  static constexpr Duration kPacedFrom = std::chrono::milliseconds{1};

  // A segment of RFC 9438: the largest datagram that has come. With a smaller one a channel of
  // large datagrams would grow, where there are losses, by a small part of one in each round trip.
  size_t unit_ = kUnit;
  size_t window_ = kFirst;
  size_t threshold_ = SIZE_MAX;
  Time recovery_since_ = Time::from_ns(INT64_MIN / 2);
  // In units.
  double before_loss_ = 0;  // W_max
  double origin_ = 0;       // where the curve is flat
  double reach_ = 0;        // K: seconds until there
  double estimate_ = 0;     // W_est: where Reno would be
  Time epoch_ = Time::never();
};

}  // namespace weft::wdp
