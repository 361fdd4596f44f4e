#include "sdp/core/write_sink.h"

namespace weft::sdp {

uint32_t WriteSink::advertise(uint32_t length) {
  advertised_.push_back(length);
  return taken_;
}

bool WriteSink::cancel() {
  if (cancelled_ || advertised_.empty()) return false;
  cancelled_ = true;
  return true;
}

// A cancel that finds no buffer at the source has no answer (write_source.h).
void WriteSink::end_oldest(uint32_t bytes) {
  advertised_.pop_front();
  outcomes_.push_back(bytes);
  if (advertised_.empty()) cancelled_ = false;
}

void WriteSink::on_data() {
  if (advertised_.empty()) {
    ++taken_;
  } else {
    end_oldest(0);
  }
}

bool WriteSink::on_written(uint32_t bytes) {
  if (advertised_.empty() || bytes == 0 || bytes > advertised_.front()) return false;
  end_oldest(bytes);
  return true;
}

bool WriteSink::on_cancel_ack() {
  if (!cancelled_) return false;
  end_all();
  return true;
}

void WriteSink::end_all() {
  while (!advertised_.empty()) end_oldest(0);
}

std::optional<uint32_t> WriteSink::take_outcome() {
  if (outcomes_.empty()) return std::nullopt;
  const uint32_t bytes = outcomes_.front();
  outcomes_.pop_front();
  return bytes;
}

}  // namespace weft::sdp
