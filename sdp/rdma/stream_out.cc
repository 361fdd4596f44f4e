#include "sdp/rdma/stream_out.h"

namespace weft::sdp {

void StreamOut::send_message() {
  const SendBuffers::Message message = buffers_.next();
  const uint8_t flags = message.urgent ? Bsdh::kOobPresent | Bsdh::kOobPending : 0;
  if (link_.send_data(message.header, message.payload, buffers_.key(), flags)) buffers_.posted();
}

void StreamOut::send() {
  if (link_.broken()) return;
  link_.send_controls();
  Connection& connection = link_.connection();
  const QueuePair& queue_pair = link_.queue_pair();
  while (buffers_.waiting() && connection.data_may_go() && queue_pair.has_place()) send_message();
  if (ending_ && !buffers_.waiting()) {
    connection.end_sending();
    connection.everything_is_sent();
    link_.send_controls();
  }
}

bool StreamOut::may_advertise() const {
  return writable() && !buffers_.waiting() && link_.queue_pair().has_place() &&
         link_.connection().may_advertise();
}

bool StreamOut::advertise(const std::byte* from, uint32_t bytes, uint32_t rkey) {
  const SrcAvail buffer{.length = bytes, .stag = rkey, .to = reinterpret_cast<uintptr_t>(from)};
  return link_.send(link_.connection().send_src_avail(buffer, *from));
}

void StreamOut::cancel_advertising() {
  link_.connection().cancel_src_avail();
  send();
}

std::optional<uint32_t> StreamOut::take_outcome() {
  const auto outcome = link_.connection().take_outcome();
  if (!outcome) return std::nullopt;
  Traffic::add(link_.traffic().bytes_sent, outcome->bytes);
  return outcome->bytes;
}

// The Write and RdmaWrCompl need a place in the queue each.
bool StreamOut::may_write() const {
  return writable() && !buffers_.waiting() && link_.queue_pair().places() >= 2 &&
         link_.connection().may_write();
}

uint32_t StreamOut::write(const std::byte* from, uint32_t bytes, uint32_t lkey) {
  if (bytes == 0 || !may_write()) return 0;
  const WriteSource::Piece piece = link_.connection().start_write(bytes);
  if (!link_.queue_pair().write({from, piece.length, lkey}, {piece.to, piece.stag})) return 0;
  Traffic::add(link_.traffic().bytes_sent, piece.length);
  send();
  return piece.length;
}

bool StreamOut::busy() const {
  return buffers_.waiting() || link_.queue_pair().writes() > 0 || advertising() ||
         (ending_ && !link_.connection().sent_end());
}

bool StreamOut::has_sent_all() const {
  const QueuePair& queue_pair = link_.queue_pair();
  if (queue_pair.down() || !link_.is_open()) return true;
  // What says so to the peer is on its way.
  if (link_.error() != 0) return queue_pair.all_completed();
  return ending_ == link_.connection().sent_end() && buffers_.empty() && queue_pair.all_completed();
}

bool StreamOut::has_said_all() const {
  return has_sent_all() && (link_.broken() || link_.connection().sent_end());
}

}  // namespace weft::sdp
