#include "wdp/csn_window.h"

namespace weft::wdp {

CsnWindow::Seen CsnWindow::look(Csn csn) const {
  const int32_t ahead = distance(cum_, csn);
  if (ahead < 0) return Seen::before;
  if (ahead >= static_cast<int32_t>(kCsnWindow)) return Seen::too_far;
  return holds(csn) ? Seen::before : Seen::first_time;
}

void CsnWindow::take(Csn csn) {
  if (csn != cum_) {
    if (bits_ == nullptr) bits_ = std::make_unique<std::array<uint64_t, kWords>>();
    const uint32_t i = csn.value() % kCsnWindow;
    (*bits_)[i / 64] |= uint64_t{1} << (i % 64);
    ++held_;
    return;
  }
  cum_ = next(cum_);
  while (held_ > 0 && holds(cum_)) {
    const uint32_t i = cum_.value() % kCsnWindow;
    (*bits_)[i / 64] &= ~(uint64_t{1} << (i % 64));
    --held_;
    cum_ = next(cum_);
  }
  if (held_ == 0) bits_.reset();
}

void CsnWindow::tell(wire::WdpAck& ack) const {
  ack.cum = cum_;
  if (held_ == 0) return;
  uint32_t left = held_;
  for (uint32_t i = 1; left > 0 && i <= 32 * wire::WdpAck::kMaxWords; ++i) {
    const Csn csn = cum_ + i;
    if (!holds(csn)) continue;
    --left;
    ack.hold(csn);
  }
}

}  // namespace weft::wdp
