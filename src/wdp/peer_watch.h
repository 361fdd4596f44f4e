// When to ask whether the peer of a channel is there, while nothing passes (spec/wdp-rd 7.4). A
// connection that waits for an answer hears of its peer's end soon; one at rest costs next to
// nothing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "wdp/rd_limits.h"

namespace weft::wdp {

class PeerWatch {
 public:
  // Anything came from the peer.
  void heard(Time now) {
    heard_ = now;
    unanswered_ = 0;
    next_ = now + pause_;
  }
  // Data came, or was acknowledged: more may be waited for.
  void exchanged() { set_pause(kFirstRest); }
  // It was a question or an answer of a peer at rest.
  void rested() { set_pause(std::min<Duration>(kRestGrowth * pause_, kKeepaliveAfter)); }

  Time deadline() const { return next_; }
  // Questions in a row without an answer.
  uint32_t unanswered() const { return unanswered_; }

  enum class Due : uint8_t { nothing, question, end };
  Due tick(Time now) {
    if (now < next_) return Due::nothing;
    // A process that was stopped has heard nothing, whatever came: that it is late does not count.
    heard_ = heard_ + (now - next_);
    if (now >= heard_ + kSilenceOfGone) return Due::end;
    ++unanswered_;
    next_ = std::min(now + kKeepaliveEvery, heard_ + kSilenceOfGone);
    return Due::question;
  }

 private:
  static constexpr Duration kSilenceOfGone = kKeepaliveAfter + kKeepaliveTries * kKeepaliveEvery;

  void set_pause(Duration pause) {
    pause_ = pause;
    next_ = heard_ + pause_;
  }

  Time heard_ = Time::never();
  Duration pause_ = kFirstRest;
  Time next_ = Time::never();
  uint32_t unanswered_ = 0;
};

}  // namespace weft::wdp
