// The end of a channel as this side says it (spec/wdp-rd 2.4): what is under way first, then DREQ
// in pauses that double, until the peer has answered or nobody is there.
//
//   wait() ─ all has come, or kLastMessages ─► begin() ─► DREQ, again ─► DREP, or the last one:
//   over
#pragma once

#include <algorithm>
#include <cstdint>

#include "wdp/rd_limits.h"
#include "wire/wdp_ctl.h"

namespace weft::wdp {

// Of one channel. Engine holder only.
class RdGoodbye {
 public:
  // The peer lacks something yet.
  void wait(Time now) {
    if (by_.is_never()) by_ = now + kLastMessages;
  }
  bool waits() const { return !by_.is_never(); }
  // It has had its time.
  bool is_late(Time now) const { return now >= by_; }

  // The channel was idle: nothing more is taken from now on, so that DREQ can say that nothing
  // beyond CUM was. The peer sends it by another channel.
  void take_nothing() { takes_nothing_ = true; }
  bool takes_nothing() const { return takes_nothing_; }

  // The next DREQ is said now. `pause`: how long an answer takes.
  struct Dreq {
    uint8_t attempt;
    wire::DreqReason reason;
  };
  Dreq say(Duration pause, Time now) {
    by_ = Time::never();
    const Duration most = takes_nothing_ ? kMostProbePause : kDreqEvery;
    again_at_ = now + std::min(pause * (int64_t{1} << said_), most);
    return {static_cast<uint8_t>(said_++),
            takes_nothing_ ? wire::DreqReason::idle : wire::DreqReason::none};
  }
  // It is answered, or not wanted.
  void stop() { by_ = again_at_ = Time::never(); }

  // While it waits; of DREQ.
  Time waits_until() const { return by_; }
  Time deadline() const { return again_at_; }
  // again: DREQ is due. over: nobody has answered the last one.
  enum class Due : uint8_t { nothing, again, over };
  Due tick(Time now) {
    if (now < again_at_) return Due::nothing;
    if (said_ < (takes_nothing_ ? kIdleGoodbyes : kGoodbyes)) return Due::again;
    stop();
    return Due::over;
  }

 private:
  static constexpr uint32_t kGoodbyes = 6;
  // Nobody waits for the end of an idle one, and the peer's messages depend on it.
  static constexpr uint32_t kIdleGoodbyes = 16;

  Time by_ = Time::never();
  bool takes_nothing_ = false;
  uint32_t said_ = 0;  // DREQs
  Time again_at_ = Time::never();
};

}  // namespace weft::wdp
