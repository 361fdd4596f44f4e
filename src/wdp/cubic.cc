#include "wdp/cubic.h"

#include <algorithm>
#include <cmath>

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;

// RFC 9438 4.1 and 4.6.
constexpr double kC = 0.4;
constexpr double kBeta = 0.7;
// RFC 9438 4.3: alpha_cubic = 3 * (1 - beta) / (1 + beta).
constexpr double kAlpha = 3 * (1 - kBeta) / (1 + kBeta);

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

void Cubic::use_unit(size_t bytes) {
  const double of_old = static_cast<double>(unit_) / static_cast<double>(bytes);
  unit_ = bytes;
  before_loss_ *= of_old;
  epoch_ = Time::never();  // the curve begins anew
}

void Cubic::acknowledged(size_t bytes, Time sent, bool limited, Duration least_round_trip,
                         Duration latest_round_trip, Time now) {
  // RFC 9002 7.3.2: nothing grows while what was sent before the loss comes in. RFC 9002 7.8: nor
  // while the window is not used.
  if (sent <= recovery_since_ || !limited) return;
  if (in_slow_start()) {
    window_ += bytes;
    // RFC 9406 4.2: an eighth more than the least, between 4 and 16 ms, says that a queue builds
    // up.
    const Duration more = std::clamp<Duration>(least_round_trip / 8, Duration{4ms}, Duration{16ms});
    if (latest_round_trip > least_round_trip + more) threshold_ = window_;
    return;
  }
  avoid(bytes, latest_round_trip, now);
}

void Cubic::avoid(size_t bytes, Duration round_trip, Time now) {
  const double unit = static_cast<double>(unit_);
  const double units = static_cast<double>(window_) / unit;
  if (epoch_.is_never()) {
    epoch_ = now;
    estimate_ = units;
    origin_ = std::max(before_loss_, units);
    reach_ = std::cbrt((origin_ - units) / kC);
  }
  // RFC 9438 4.2: W_cubic(t + RTT), at most half as much again as the window is.
  const double t = seconds(now - epoch_) + seconds(round_trip) - reach_;
  const double target = std::clamp(kC * t * t * t + origin_, units, 1.5 * units);
  const double share = static_cast<double>(bytes) / unit / units;
  // RFC 9438 4.3: not less than Reno would have.
  estimate_ += (estimate_ < before_loss_ ? kAlpha : 1) * share;
  const double next = std::max(units + (target - units) * share, estimate_);
  window_ = static_cast<size_t>(next * unit);
}

void Cubic::congested(Time sent, Time now) {
  if (sent <= recovery_since_) return;  // of the same period
  recovery_since_ = now;
  const double units = static_cast<double>(window_) / static_cast<double>(unit_);
  // RFC 9438 4.7: fast convergence, for those who begin later.
  before_loss_ = units < before_loss_ ? units * (1 + kBeta) / 2 : units;
  window_ = std::max(static_cast<size_t>(static_cast<double>(window_) * kBeta), least());
  threshold_ = window_;
  epoch_ = Time::never();
}

// spec/wdp-rd 5.4: a window in four fifths of a round trip, or in half of one while it doubles.
Duration Cubic::pause(const Departure& datagram, Duration round_trip) const {
  if (round_trip < kPacedFrom) return Duration{0};
  const double share = static_cast<double>(datagram.weight) / static_cast<double>(window_);
  const double faster = in_slow_start() ? 2 : 1.25;
  return Duration{static_cast<int64_t>(static_cast<double>(round_trip.count()) * share / faster)};
}

// RFC 9002 7.6.2.
void Cubic::collapsed(Time now) {
  recovery_since_ = now;
  before_loss_ = static_cast<double>(window_) / static_cast<double>(unit_);
  threshold_ = std::max(static_cast<size_t>(static_cast<double>(window_) * kBeta), least());
  window_ = least();
  epoch_ = Time::never();
}

}  // namespace weft::wdp
