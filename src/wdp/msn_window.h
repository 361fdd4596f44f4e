// Which messages of a session are over: the last 1024 MSNs (spec/wdp-uc 3.4). What is over stays
// over, whatever still comes of it.
#pragma once

#include <array>

#include "base/result.h"
#include "base/types.h"
#include "wdp/limits.h"
#include "wire/wdp_drop.h"

namespace weft::wdp {

class MsnWindow {
 public:
  // Every message takes a datagram at least, so one whose PSN is in order is not further ahead than
  // PSNs may jump; and one behind the window whose PSN is the newest so far comes from a peer that
  // counts anew, as a circuit may that goes on with its PSN. A forged one must not make all that is
  // good look stale; as with PSNs, one that persists is followed: see took_jump(). Of PSNs that are
  // late all is late.
  Result<Ok, wire::WdpDrop> check(Msn msn, bool newest_psn) {
    const bool good = near(msn);
    jumped_ = !good && newest_psn && ++candidates_ >= kResyncAfter;
    if (good || jumped_) {
      candidates_ = 0;
      return Ok{};
    }
    return fail(distance(highest_, msn) < 0 ? wire::WdpDrop::stale_msn : wire::WdpDrop::msn_jump);
  }
  // The last check() followed a peer to numbers far away: what is known of messages is over.
  bool took_jump() const { return jumped_; }
  // Would check() say yes?
  bool near(Msn msn) const {
    const int32_t d = started_ ? distance(highest_, msn) : 0;
    return d > -kMsnWindow && d <= kMostJump;
  }
  // A datagram of it has come; check() said yes. True when it is the newest message so far.
  bool note(Msn msn) {
    if (!started_) {
      started_ = true;
      closed_.fill(0);
      highest_ = Msn{msn.value() - 1};
    }
    const int32_t d = distance(highest_, msn);
    if (d <= 0) return false;
    if (d >= kMsnWindow) {
      closed_.fill(0);
    } else {
      for (Msn m = next(highest_); m != next(msn); m = next(m)) word(m) &= ~bit(m);
    }
    highest_ = msn;
    return true;
  }
  // The peer begins anew.
  void restart() { started_ = false; }

  Msn highest() const { return highest_; }
  // Complete or given up. Of those in the window, or newer: there the bit is of an older one.
  bool closed(Msn msn) const {
    return started_ && distance(highest_, msn) <= 0 &&
           (closed_[msn.value() / 64 % kWords] & bit(msn)) != 0;
  }
  void close(Msn msn) { word(msn) |= bit(msn); }

 private:
  static constexpr size_t kWords = kMsnWindow / 64;
  static constexpr int32_t kMostJump = static_cast<int32_t>(kPsnWindow);
  uint64_t& word(Msn m) { return closed_[m.value() / 64 % kWords]; }
  static uint64_t bit(Msn m) { return uint64_t{1} << m.value() % 64; }

  bool started_ = false;
  Msn highest_;
  uint32_t candidates_ = 0;
  bool jumped_ = false;
  std::array<uint64_t, kWords> closed_{};
};

}  // namespace weft::wdp
