#include "sdp/core/write_source.h"

#include <algorithm>

namespace weft::sdp {

WriteSource::Piece WriteSource::start_write(uint32_t most) {
  const SinkAvail& buffer = held_.front();
  const Piece piece{buffer.stag, buffer.to, std::min(most, buffer.length)};
  written_ = piece.length;
  held_.pop_front();
  return piece;
}

void WriteSource::on_data() {
  if (!held_.empty()) return held_.pop_front();
  ++sent_;
  ++behind_change_;
}

WriteSource::Taken WriteSource::on_sink_avail(const SinkAvail& buffer, bool crossed) {
  const bool wraps = buffer.length > 0 && buffer.to > UINT64_MAX - (buffer.length - 1);
  if (buffer.length == 0 || buffer.length < least_ || wraps) return Taken::broken;
  // A SinkAvail that crossed the change was discarded by the change, unless Data in front of the
  // change had discarded it.
  const uint32_t sent = crossed ? sent_ - behind_change_ : sent_;
  const auto ahead = static_cast<int32_t>(sent - buffer.non_discards);
  if (ahead < 0) return Taken::broken;
  if (ahead > 0) {
    --sent_;
    return Taken::stale;
  }
  if (crossed) return Taken::crossed;
  if (held_.size() >= most_) return Taken::broken;
  held_.push_back(buffer);
  return Taken::held;
}

bool WriteSource::on_cancel() {
  const bool dropped = !held_.empty();
  held_.clear();
  return dropped;
}

}  // namespace weft::sdp
