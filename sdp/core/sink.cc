#include "sdp/core/sink.h"

#include <algorithm>

#include "sdp/core/modes.h"

namespace weft::sdp {

uint32_t Sink::available() const {
  return advert_ && !advert_->cancelled ? advert_->buffer.length - advert_->started : 0;
}

Sink::Piece Sink::start_read(uint32_t most) {
  const uint32_t length = std::min(most, available());
  const Piece piece{advert_->buffer.stag, advert_->buffer.to + advert_->started, length};
  advert_->started += length;
  advert_->in_flight += length;
  return piece;
}

Sink::Answer Sink::finish_read(uint32_t bytes) {
  advert_->in_flight -= bytes;
  Answer answer{.bytes = bytes};
  if (advert_->in_flight > 0) return answer;
  const bool all = advert_->started == advert_->buffer.length;
  answer.drop = advert_->cancelled && !all;
  if (all || answer.drop) advert_.reset();
  return answer;
}

bool Sink::on_src_avail(const SrcAvail& advert, uint32_t payload) {
  // Where the payload is all there is, nothing would be left to answer.
  const bool all_came = counted(payload) >= advert.length;
  if (advert_ || mode_ == Mode::buffered || payload > advert.length || all_came) return false;
  if (mode_ == Mode::pipelined && payload > 0) return false;
  advert_ = Advert{.buffer = advert, .started = counted(payload)};
  return true;
}

bool Sink::on_mode_change(Mode mode) {
  if (!mode_may_change(mode_, mode, Changer::source)) return false;
  // The source that leaves Pipelined mode advertises the buffer again.
  if (advert_ && (mode_ != Mode::pipelined || reading())) return false;
  advert_.reset();
  mode_ = mode;
  return true;
}

Sink::Cancel Sink::on_cancel() {
  if (!advert_) return Cancel::nothing;
  if (advert_->in_flight == 0) {
    advert_.reset();
    return Cancel::drop;
  }
  advert_->cancelled = true;
  return Cancel::wait;
}

}  // namespace weft::sdp
