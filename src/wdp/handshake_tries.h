// When a message of a handshake is said again, and when its answer is given up (spec/wdp 4.2, 4.5).
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/time.h"

namespace weft::wdp {

// How long REQ and REP are repeated.
inline constexpr std::array<Duration, 7> kHandshakeTries = {Duration{0},
                                                            std::chrono::milliseconds{100},
                                                            std::chrono::milliseconds{300},
                                                            std::chrono::milliseconds{700},
                                                            std::chrono::milliseconds{1500},
                                                            std::chrono::milliseconds{3100},
                                                            std::chrono::milliseconds{6300}};
inline constexpr Duration kHandshakeFails = std::chrono::milliseconds{12700};
inline constexpr std::array<Duration, 3> kRtuTries = {Duration{0}, std::chrono::milliseconds{100},
                                                      std::chrono::milliseconds{300}};
// From a peer's first WAIT on, however many follow: an application that has not made up its mind by
// then is given up. Each may ask for 30 s.
inline constexpr Duration kMostWaiting = std::chrono::minutes{10};

// Of one side, for what it says at a time. A value type. Not thread-safe.
class HandshakeTries {
 public:
  // A REQ or REP is said now for the first time. An answer is waited for from now on.
  void begin(Time now);
  // An RTU is. It has no answer.
  void begin_rtu(Time now);
  // The peer has said WAIT: as begin() after `more`, but for kMostWaiting from its first one on.
  void wait(Time now, Duration more);
  // It is not repeated, or no longer; an answer is still waited for.
  void stop_repeating() { next_ = Time::never(); }
  // What is not repeated is from now on, as long as there are tries left.
  void resume(Time now);
  // There is an answer, or nobody wants one.
  void stop() { next_ = fails_ = Time::never(); }
  // Waits so long instead.
  void give_up_at(Time when) { fails_ = when; }

  Time deadline() const { return std::min(next_, fails_); }
  bool is_given_up(Time now) const { return now >= fails_; }
  // It is to be said again. Then comes repeated().
  bool is_due(Time now) const { return now >= next_; }
  void repeated(Time now);
  // When begin() was, with the pauses that the peer has asked for.
  Time since() const { return since_; }

 private:
  std::span<const Duration> pauses_ = kHandshakeTries;  // since since_
  size_t try_ = 0;                                      // in pauses_
  Time since_;
  Time next_ = Time::never();
  Time fails_ = Time::never();
  Time waits_until_ = Time::never();  // for a peer that says WAIT, at most
};

}  // namespace weft::wdp
