#include "sdp/core/receiving_half.h"

#include <utility>

namespace weft::sdp {

Result<Bytes, Violation> ReceivingHalf::on_data(Bytes payload) {
  if (!payload.empty() && got_end_) return fail(Violation::after_end);
  if (!sink_.on_data(static_cast<uint32_t>(payload.size()))) return fail(Violation::mode);
  if (!payload.empty()) write_sink_.on_data();
  return payload;
}

Result<Bytes, Violation> ReceivingHalf::on_src_avail(const SrcAvail& buffer, Bytes payload) {
  const auto length = static_cast<uint32_t>(payload.size());
  if (got_end_) return fail(Violation::after_end);
  if (write_sink_.advertising()) {
    // The peer takes it back when it gets the SinkAvail (spec/sdp 7, 3).
    if (length > 0) return fail(Violation::mode);
    return payload;
  }
  if (!sink_.on_src_avail(buffer, length)) return fail(Violation::mode);
  return payload.first(Sink::counted(length));
}

Sink::Cancel ReceivingHalf::on_src_avail_cancel() {
  const Sink::Cancel asked = sink_.on_cancel();
  if (asked == Sink::Cancel::drop) send_sm_ = true;
  return asked;
}

bool ReceivingHalf::on_mode_change(Mode mode) {
  if (!sink_.on_mode_change(mode)) return false;
  if (mode != Mode::pipelined) write_sink_.end_all();
  return true;
}

bool ReceivingHalf::on_end() {
  write_sink_.end_all();
  return !std::exchange(got_end_, true);
}

void ReceivingHalf::finish_read(uint32_t bytes) {
  const Sink::Answer answer = sink_.finish_read(bytes);
  bytes_read_ += answer.bytes;
  if (answer.drop) send_sm_ = true;
}

void ReceivingHalf::refuse() {
  if (!sink_.advertised() || sink_.reading()) return;
  sink_.drop();
  send_sm_ = true;
}

bool ReceivingHalf::may_advertise() const {
  const bool holds_none = !sink_.advertised() && bytes_read_ == 0 && !send_sm_;
  return sink_.mode() == Mode::pipelined && !got_end_ && holds_none && write_sink_.may_advertise();
}

std::optional<Owed> ReceivingHalf::next() {
  if (bytes_read_ > 0) {
    return Owed{.mid = MessageId::rdma_rd_compl, .length = std::exchange(bytes_read_, 0)};
  }
  if (std::exchange(send_sm_, false)) return Owed{.mid = MessageId::send_sm};
  if (std::exchange(cancel_, false) && write_sink_.cancelled()) {
    return Owed{.mid = MessageId::sink_avail_cancel};
  }
  return std::nullopt;
}

}  // namespace weft::sdp
