#include "sdp/core/source.h"

#include <utility>

#include "sdp/core/modes.h"

namespace weft::sdp {

bool Source::cancel() {
  if (!advert_ || advert_->cancelled) return false;
  advert_->cancelled = true;
  return true;
}

bool Source::on_read(uint32_t bytes) {
  if (!advert_ || bytes > advert_->length - advert_->read) return false;
  advert_->read += bytes;
  if (advert_->read == advert_->length) end();
  return true;
}

// With one buffer at a time it does not matter whether this answers a cancel or came before: the
// peer has dropped the rest either way, and takes a cancel that comes later for nothing.
bool Source::on_send_sm() {
  if (!advert_) return false;
  end();
  return true;
}

// Buffered to Combined is the sink's to say. That the sink would rather have Data is not: it
// answers with SendSm.
bool Source::on_mode_change(Mode mode) {
  if (!mode_may_change(mode_, mode, Changer::sink)) return false;
  mode_ = mode;
  return true;
}

bool Source::on_sink_avail(uint32_t taken) {
  if (!advert_) return true;
  if (static_cast<int32_t>(taken - advert_->mseq) >= 0) return false;
  end();
  return true;
}

std::optional<Source::Outcome> Source::take_outcome() {
  return std::exchange(outcome_, std::nullopt);
}

}  // namespace weft::sdp
