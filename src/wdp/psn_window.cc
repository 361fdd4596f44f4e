#include "wdp/psn_window.h"

namespace weft::wdp {

using wire::WdpDrop;

namespace {
constexpr auto kWindow = static_cast<int32_t>(kPsnWindow);
}

PsnWindow::PsnWindow(std::optional<Psn> first, bool restarts)
    : restarts_(restarts), started_(first.has_value()) {
  // What the peer did not announce it does not send.
  bits_.fill(started_ ? ~uint64_t{0} : 0);
  if (first) highest_ = Psn{first->value() - 1};
}

bool PsnWindow::seen(Psn psn) const {
  const int32_t d = distance(highest_, psn);
  if (d > 0 || !started_) return false;
  if (d <= -kWindow) return true;
  return (bits_[psn.value() / 64 % kWords] & bit(psn)) != 0;
}

// spec/wdp-uc 3.2: PSN jump ...: drop unless it persists for 16 datagrams (resync), so one
// forged datagram cannot blind the window. Whatever is further ahead than the window would make
// all that is good too old. After an outage the peer's numbers go on, and what is between is lost;
// after more than an outage they begin anew.
bool PsnWindow::far(Psn psn) {
  const int32_t step = distance(candidate_, psn);
  const bool persists = candidates_ > 0 && step > -kWindow && step < kWindow;
  candidates_ = persists ? candidates_ + 1 : 1;
  candidate_ = psn;
  if (candidates_ < kResyncAfter) return false;
  candidates_ = 0;
  jumped_ = true;
  if (const int32_t d = distance(highest_, psn); d > 0 && d <= kMostPsnJump) {
    unique_ += kResyncAfter - 1;  // these have come, though nobody took them
    return true;
  }
  highest_ = Psn{psn.value() - 1};
  bits_.fill(0);
  span_ = 0;
  return true;
}

Result<Ok, WdpDrop> PsnWindow::check(Psn psn) {
  jumped_ = false;
  if (!started_) return Ok{};
  const int32_t d = distance(highest_, psn);
  if (d > kWindow) {
    if (!far(psn)) return fail(WdpDrop::psn_jump);
    return Ok{};
  }
  if (d <= -kWindow) {
    if (!restarts_ || d >= -kMostPsnJump || !far(psn)) return fail(WdpDrop::stale_psn);
    return Ok{};
  }
  candidates_ = 0;
  if (d <= 0 && (word(psn) & bit(psn)) != 0) return fail(WdpDrop::duplicate);
  return Ok{};
}

void PsnWindow::advance(Psn psn) {
  const auto steps = static_cast<uint32_t>(distance(highest_, psn));
  passed_ += steps;
  span_ += steps;
  if (steps >= kPsnWindow) {
    bits_.fill(0);
  } else {
    for (Psn p = next(highest_); p != next(psn); p = next(p)) word(p) &= ~bit(p);
  }
  highest_ = psn;
}

void PsnWindow::mark(Psn psn) {
  if (!started_) {
    started_ = true;
    highest_ = Psn{psn.value() - 1};
  }
  const int32_t d = distance(highest_, psn);
  if (d > 0) {
    advance(psn);
  } else if (const auto behind = static_cast<uint64_t>(-int64_t{d}); behind >= span_) {
    // The peer began before the first that came.
    passed_ += behind + 1 - span_;
    span_ = behind + 1;
  }
  word(psn) |= bit(psn);
  ++unique_;
}

uint64_t PsnWindow::lost() const {
  uint64_t sent = passed_;
  if (started_ && peer_highest_) {
    const int32_t more = distance(highest_, *peer_highest_);
    if (more > 0 && more <= kMostPsnJump) sent += static_cast<uint64_t>(more);
  }
  return sent > unique_ ? sent - unique_ : 0;
}

}  // namespace weft::wdp
