#include "sdp/rdma/stream_in.h"

#include <algorithm>
#include <cerrno>

namespace weft::sdp {
namespace {

constexpr uint32_t kReceives = QueuePair::kReceives;
// Data needs credits that control messages leave over (spec/sdp 4).
constexpr uint32_t kLeastReceives = 6;
// Numbers of receive buffers end here; then comes the one where Reads are staged.
constexpr uint32_t kStaged = kReceives;
static_assert(kStaged < ReceiveQueue::kMost);

uint16_t receives_for(uint32_t bytes) {
  const uint32_t most = bytes == 0 ? kReceives : bytes / Link::kMessage;
  return static_cast<uint16_t>(std::clamp(most, kLeastReceives, kReceives));
}

}  // namespace

bool StreamIn::allocate(ibv_pd* pd, uint32_t bytes) {
  if (!receives_.allocate(pd, kReceives, Link::kMessage)) return false;
  receives_.limit_posted(receives_for(bytes));
  return post_receives();
}

void StreamIn::limit_bytes(uint32_t bytes) {
  receives_.limit_posted(receives_for(bytes));
  (void)post_receives();
}

// Those that are free, as many as may be.
bool StreamIn::post_receives() {
  while (const auto next = receives_.take()) {
    const QueuePair::Local buffer{receives_.at(*next), Link::kMessage, receives_.key()};
    if (!link_.queue_pair().post_receive(buffer, static_cast<uint8_t>(*next))) return false;
    receives_.posted();
    if (link_.is_open()) link_.connection().posted();
  }
  return true;
}

void StreamIn::release(uint32_t buffer) {
  receives_.give_back(buffer);
  (void)post_receives();
}

std::optional<Violation> StreamIn::on_message(uint8_t buffer, uint32_t bytes) {
  receives_.used();
  if (link_.error() != 0) return std::nullopt;
  Connection& connection = link_.connection();
  const bool advertised = connection.sink().advertised();
  const auto in = connection.on_message({receives_.at(buffer), bytes});
  Traffic::add(link_.traffic().messages_received, 1);
  if (!in.ok()) return in.error();
  if (in->aborted) {
    // Where both have ended it is over, and a peer that has left data unread ends nothing.
    const bool over = connection.got_end() && connection.sent_end();
    if (over) {
      release(buffer);
    } else {
      link_.fail(connection.got_end() ? EPIPE : ECONNRESET);
    }
    return std::nullopt;
  }
  const bool advertises = connection.sink().advertised() && !advertised;
  const Bytes payload = in->payload;
  if (refuses_data_ && (advertises || !payload.empty())) {
    link_.abort();
    return std::nullopt;
  }
  if (in->urgent) {
    // With the newer one the older goes, where it would have been left out.
    if (urgent_.is_left_out()) take(1);
    urgent_.came(received_.bytes() + payload.size() - 1, payload.back());
  }
  if (!payload.empty()) {
    Traffic::add(link_.traffic().bytes_received, payload.size());
    received_.push(payload, buffer);
  } else {
    release(buffer);
  }
  return std::nullopt;
}

void StreamIn::take(size_t bytes) {
  while (bytes > 0) {
    const size_t n = std::min(bytes, received_.front().size());
    bytes -= n;
    urgent_.taken(n);
    const auto buffer = received_.take(n);
    if (!buffer) continue;
    if (*buffer == kStaged) {
      reads_.taken();
    } else {
      release(*buffer);
    }
  }
}

bool StreamIn::ended() const {
  const bool ended = got_end() && !link_.connection().sink().advertised();
  return ended || link_.broken();
}

uint32_t StreamIn::offered() const {
  return link_.broken() || !reads_.may_begin() ? 0 : link_.connection().sink().available();
}

uint32_t StreamIn::stage() {
  return offered() > 0 ? read(reads_.stage(link_.queue_pair().pd())) : 0;
}

// What came before it is read first, the payload of its message too.
uint32_t StreamIn::read(const SinkReads::Target& target) {
  QueuePair& queue_pair = link_.queue_pair();
  if (offered() == 0 || !received_.empty() || !queue_pair.has_place()) return 0;
  if (target.most == 0) {
    // There is no memory to stage it.
    if (!reads_.has_staging()) link_.connection().refuse_src_avail();
    return 0;
  }
  const Sink::Piece piece = link_.connection().start_read(target.most);
  const QueuePair::Local to{target.to, piece.length, target.key};
  if (!queue_pair.read(to, {piece.to, piece.stag})) return 0;
  reads_.begin(target, piece.length);
  return piece.length;
}

void StreamIn::on_read() {
  const uint32_t bytes = reads_.bytes();
  Traffic::add(link_.traffic().bytes_received, bytes);
  Traffic::add(link_.traffic().bytes_read, bytes);
  const Bytes staged = reads_.end();
  if (!staged.empty()) received_.push(staged, kStaged);
  link_.connection().finish_read(bytes);
}

bool StreamIn::may_offer() const {
  return !link_.broken() && !readable() && !reads_.under_way() && link_.queue_pair().has_place() &&
         link_.connection().may_send_sink_avail();
}

bool StreamIn::offer(std::byte* to, uint32_t bytes, uint32_t rkey) {
  if (bytes < kLeastOffer || !may_offer()) return false;
  return link_.send(
      link_.connection().send_sink_avail(bytes, rkey, reinterpret_cast<uintptr_t>(to)));
}

void StreamIn::cancel_offer() {
  link_.connection().cancel_sink_avail();
  link_.send_controls();
}

std::optional<uint32_t> StreamIn::take_written() {
  const auto bytes = link_.connection().take_written();
  if (bytes) {
    Traffic::add(link_.traffic().bytes_received, *bytes);
    Traffic::add(link_.traffic().bytes_written, *bytes);
  }
  return bytes;
}

void StreamIn::ask_for_offers() {
  link_.connection().ask_for_pipelined();
  link_.send_controls();
}

}  // namespace weft::sdp
