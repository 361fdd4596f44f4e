#include "sdp/core/sending_half.h"

#include <utility>

#include "sdp/core/modes.h"

namespace weft::sdp {

bool SendingHalf::on_send_sm() {
  if (!source_.on_send_sm()) return false;
  cancel_ = false;
  return true;
}

std::optional<Violation> SendingHalf::on_sink_avail(const SinkAvail& buffer,
                                                    uint32_t acknowledged) {
  if (sent_end_) return std::nullopt;
  const bool pipelined = source_.mode() == Mode::pipelined;
  const bool crossed =
      !pipelined && left_pipelined_ > 0 && static_cast<int32_t>(acknowledged - left_pipelined_) < 0;
  if (!pipelined && !crossed) return Violation::mode;
  switch (write_source_.on_sink_avail(buffer, crossed)) {
    case WriteSource::Taken::held:
      if (!source_.on_sink_avail(acknowledged)) return Violation::mode;
      if (source_.may_send_data()) cancel_ = false;
      break;
    case WriteSource::Taken::stale:
    case WriteSource::Taken::crossed:
      break;
    case WriteSource::Taken::broken:
      return Violation::advert;
  }
  return std::nullopt;
}

std::optional<Owed> SendingHalf::next(const Credits& credits) {
  if (write_source_.completing()) {
    return Owed{.mid = MessageId::rdma_wr_compl, .length = write_source_.take_completion()};
  }
  if (std::exchange(sink_cancel_ack_, false)) return Owed{.mid = MessageId::sink_cancel_ack};
  if (std::exchange(cancel_, false) && advertising()) {
    return Owed{.mid = MessageId::src_avail_cancel};
  }
  if (mode_may_change_now(credits)) return change_mode_now(credits.last_sent() + 1);
  return std::nullopt;
}

void SendingHalf::end() {
  sent_end_ = true;
  write_source_.drop_all();
}

bool SendingHalf::change_mode(Mode mode) {
  if (next_mode_ || !mode_may_change(source_.mode(), mode, Changer::source)) return false;
  next_mode_ = mode;
  return true;
}

// A sink that comes back to Pipelined mode before it has heard of the change to Combined could not
// tell which of its buffers were discarded.
bool SendingHalf::mode_may_change_now(const Credits& credits) const {
  const bool left = left_pipelined_ == 0 || credits.peer_has_taken(left_pipelined_);
  return next_mode_ && !sent_end_ && left && !advertising() && !write_source_.holds();
}

Owed SendingHalf::change_mode_now(uint32_t mseq) {
  const Mode mode = *std::exchange(next_mode_, std::nullopt);
  if (source_.mode() == Mode::pipelined) {
    left_pipelined_ = mseq;
    write_source_.on_leaving_pipelined();
  }
  source_.change_mode(mode);
  return {.mid = MessageId::mode_change, .mode = mode};
}

}  // namespace weft::sdp
