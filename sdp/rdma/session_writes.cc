// Write ZCopy on a queue pair (spec/sdp 7): RDMA Writes to what the peer offers, and own memory
// that the peer writes to.
#include <cstdint>

#include "sdp/rdma/session.h"

namespace weft::sdp {

// Data that waits goes first. The Write and RdmaWrCompl need a place in the queue each.
bool Session::may_write() const {
  return writable() && !send_.waiting() && queue_pair_.places() >= 2 && connection_->may_write();
}

uint32_t Session::write(const std::byte* from, uint32_t bytes, uint32_t lkey) {
  if (bytes == 0 || !may_write()) return 0;
  const WriteSource::Piece piece = connection_->start_write(bytes);
  if (!queue_pair_.write({from, piece.length, lkey}, {piece.to, piece.stag})) return 0;
  Traffic::add(shown_.traffic().bytes_sent, piece.length);
  send_what_may_go();
  return piece.length;
}

bool Session::may_offer() const {
  return !broken() && !readable() && !reads_.under_way() && queue_pair_.has_place() &&
         connection_->may_send_sink_avail();
}

bool Session::offer(std::byte* to, uint32_t bytes, uint32_t rkey) {
  if (bytes < kLeastOffer || !may_offer()) return false;
  return post_control(connection_->send_sink_avail(bytes, rkey, reinterpret_cast<uintptr_t>(to)));
}

void Session::cancel_offer() {
  connection_->cancel_sink_avail();
  send_what_may_go();
}

std::optional<uint32_t> Session::take_written() {
  const auto bytes = connection_->take_written();
  if (bytes) {
    Traffic::add(shown_.traffic().bytes_received, *bytes);
    Traffic::add(shown_.traffic().bytes_written, *bytes);
  }
  return bytes;
}

void Session::ask_for_offers() {
  connection_->ask_for_pipelined();
  send_what_may_go();
}

}  // namespace weft::sdp
