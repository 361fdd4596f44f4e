// The rate that a user states, whatever the network does (option fixed_rate, spec/wdp-rd 5.4). For
// networks of one's own, whose capacity is known: nobody else is considered.
#pragma once

#include "wdp/congestion.h"

namespace weft::wdp {

class FixedRate final : public Congestion {
 public:
  // More than 0.
  explicit FixedRate(double gbps) : ns_per_byte_(8 / gbps) {}

  // What was lost is sent again at the same rate. A mark says what a loss says.
  void carried(size_t) override {}
  void acknowledged(size_t, Time, bool, Duration, Duration, Time) override {}
  void congested(Time, Time) override {}
  void collapsed(Time) override {}
  // What the receiver takes is the only limit: a peer that is silent gets no more than that.
  size_t window() const override { return SIZE_MAX; }
  Duration pause(const Departure& datagram, Duration round_trip) const override;

 private:
  const double ns_per_byte_;
};

}  // namespace weft::wdp
