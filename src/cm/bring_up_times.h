// How long two queue pairs that know each other's number try to find each other
// (spec/addressing 5.4), over TCP and over UDP alike.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "verbs/types.h"

namespace weft::cm {

class BringUpTimes {
 public:
  // How long the passive side waits for its peer before it begins as well (spec/addressing 5.4,
  // 6.1).
  static constexpr Duration kPassivePatience = std::chrono::seconds{1};

  // A request waits for the connection. The patience runs from the first one on: a queue pair that
  // asks for nothing tries for ever.
  void request_waits(Time now, const verbs::QpAttributes& a) {
    if (!give_up_at_.is_never()) return;
    const Duration ack =
        std::chrono::nanoseconds{4096} * (int64_t{1} << a.timeout) * (a.retry_cnt + 1);
    give_up_at_ = now + std::max<Duration>(kLeast, ack);
  }
  Time give_up_at() const { return give_up_at_; }

  // When to try again: with a quarter of jitter, so that many pairs do not try in step.
  Time next_try(Time now, uint64_t random) {
    pause_ = pause_ == Duration{} ? kFirstPause : std::min(pause_ * 2, kLongestPause);
    const auto jitter = static_cast<int64_t>(random % static_cast<uint64_t>(pause_.count() / 4));
    return std::min(now + pause_ + Duration{jitter}, give_up_at_);
  }

  // The peer says that it never will. True when it has done so for long enough, and a request
  // waits; the peer's program may still change its mind.
  bool refused_for_good(Time now) {
    if (hard_failure_since_.is_never()) hard_failure_since_ = now;
    return !give_up_at_.is_never() && now - hard_failure_since_ >= kHardFailurePatience;
  }
  void not_refused_for_good() { hard_failure_since_ = Time::never(); }

 private:
  static constexpr Duration kFirstPause = std::chrono::milliseconds{10};
  static constexpr Duration kLongestPause = std::chrono::milliseconds{500};
  static constexpr Duration kHardFailurePatience = std::chrono::seconds{2};
  static constexpr Duration kLeast = std::chrono::seconds{10};

  Duration pause_{};
  Time give_up_at_ = Time::never();
  Time hard_failure_since_ = Time::never();
};

}  // namespace weft::cm
