#include "sdp/core/credits.h"

#include <algorithm>

namespace weft::sdp {

uint32_t Credits::usable() const {
  return peer_limit_ - mseq_;
}

bool Credits::control_may_go() const {
  const uint32_t have = usable();
  return have >= kForControl || (have == 1 && raises());
}

// An answer to each message that brings news would be one that never ends: such a message is worth
// one receive, and is not answered unless the peer has no other credit.
bool Credits::news() const {
  constexpr uint32_t kNews = 2;
  if (!raises()) return false;
  const auto left = static_cast<int32_t>(told_limit_ - taken_);
  if (left < static_cast<int32_t>(kForControl)) return true;
  const bool throttled = left < static_cast<int32_t>(kForData);
  return limit() - told_limit_ >= (throttled ? kNews : std::max<uint32_t>(all_ / 4, kNews));
}

void Credits::send(Bsdh& header) {
  header.mseq = ++mseq_;
  header.mseq_ack = acknowledged();
  header.bufs = posted_;
  if (raises()) told_limit_ = limit();
}

bool Credits::take(const Bsdh& header) {
  if (header.mseq != taken_ + 1) return false;
  // It cannot have taken what was not sent, nor given back what it had taken.
  if (header.mseq_ack - peer_ack_ > mseq_ - peer_ack_) return false;
  ++taken_;
  --posted_;
  peer_ack_ = header.mseq_ack;
  peer_posted_ = header.bufs;
  const uint32_t limit = header.mseq_ack + header.bufs;
  if (static_cast<int32_t>(limit - peer_limit_) > 0) peer_limit_ = limit;
  return true;
}

}  // namespace weft::sdp
