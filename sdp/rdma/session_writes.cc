// Write ZCopy on a queue pair (spec/sdp 7): RDMA Writes to what the peer offers, and own memory
// that the peer writes to.
#include <cstdint>

#include "sdp/rdma/session.h"

namespace weft::sdp {

// Data that waits goes first. The Write and RdmaWrCompl need a place in the queue each.
bool Session::may_write() const {
  return writable() && !send_.waiting() && in_send_queue_ + 2 <= kSendQueue &&
         connection_->may_write();
}

uint32_t Session::write(const std::byte* from, uint32_t bytes, uint32_t lkey) {
  if (bytes == 0 || !may_write()) return 0;
  const WriteSource::Piece piece = connection_->start_write(bytes);
  ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(from), .length = piece.length, .lkey = lkey};
  ibv_send_wr wr{.wr_id = work_id(Work::write), .sg_list = &sge, .num_sge = 1};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {.remote_addr = piece.to, .rkey = piece.stag};
  if (!post(wr)) return 0;
  ++writes_;
  Traffic::add(shown_.traffic().bytes_sent, piece.length);
  send_what_may_go();
  return piece.length;
}

bool Session::may_offer() const {
  return !broken() && !readable() && !reads_.under_way() && in_send_queue_ < kSendQueue &&
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
