#include "trace/tcp_flow.h"

#include <algorithm>

namespace weft::trace {
namespace {

using namespace tcp_flag;

// A side that has sent so much without anything in return is answered by a bare ACK: analyses take
// what is not acknowledged for what fills the window.
constexpr size_t kMostUnacknowledged = 1024 * 1024;

}  // namespace

TcpFlow::TcpFlow(PacketSink& sink, const Endpoint& local, const Endpoint& peer, bool active,
                 size_t keep)
    : sink_(sink),
      active_(active),
      keep_(keep),
      sides_{{.end = local, .cutter = {keep, local != peer}},
             {.end = peer, .cutter = {keep, local != peer}}} {}

void TcpFlow::open(int64_t at) {
  const Direction first = active_ ? Direction::out : Direction::in;
  control(at, first, kSyn);
  control(at, reverse(first), kSyn | kAck);
  control(at, first, kAck);
}

void TcpFlow::moved(int64_t at, Direction direction, std::span<const IoVec> pieces, size_t bytes) {
  if (over_ || bytes == 0) return;
  const FrameCutter::Input input{pieces, bytes};
  if (keep_ == 0) {
    whole(at, direction, input);
  } else {
    frames(at, direction, input);
  }
  if (of(direction).unacknowledged >= kMostUnacknowledged) control(at, reverse(direction), kAck);
}

void TcpFlow::whole(int64_t at, Direction direction, FrameCutter::Input input) {
  while (!input.empty()) {
    slice_.clear();
    size_t size = 0;
    while (!input.empty() && size < kMostPayload) {
      const Bytes run = input.next(kMostPayload - size);
      if (run.empty()) break;
      slice_.push_back({const_cast<std::byte*>(run.data()), run.size()});
      size += run.size();
    }
    if (size > 0) segment(at, direction, kPsh | kAck, slice_, size, size);
  }
}

void TcpFlow::frames(int64_t at, Direction direction, FrameCutter::Input input) {
  while (of(direction).cutter.take(input)) frame(at, direction);
}

// A frame, or what is there of it.
void TcpFlow::frame(int64_t at, Direction direction) {
  FrameCutter& cutter = of(direction).cutter;
  const Bytes head = cutter.kept();
  const IoVec piece{const_cast<std::byte*>(head.data()), head.size()};
  // The largest FPDU is larger than the largest packet.
  for (size_t left = cutter.size(), kept = head.size(); left > 0; kept = 0) {
    const size_t size = std::min(left, kMostPayload);
    segment(at, direction, kPsh | kAck, {&piece, 1}, std::min(kept, size), size);
    left -= size;
  }
  if (cutter.asks_for_markers()) of(reverse(direction)).cutter.give_up();
  cutter.next();
}

void TcpFlow::finish(int64_t at, Direction direction) {
  if (over_ || of(direction).finished) return;
  if (of(direction).cutter.size() > 0) frame(at, direction);
  control(at, direction, kFin | kAck);
  of(direction).finished = true;
}

void TcpFlow::reset(int64_t at, Direction direction) {
  if (over_) return;
  unfinished_frames(at);
  control(at, direction, kRst | kAck);
  over_ = true;
}

void TcpFlow::close(int64_t at) {
  if (over_) return;
  unfinished_frames(at);
  finish(at, Direction::out);
  over_ = true;
}

void TcpFlow::unfinished_frames(int64_t at) {
  for (const Direction direction : {Direction::out, Direction::in}) {
    if (of(direction).cutter.size() > 0) frame(at, direction);
  }
}

void TcpFlow::segment(int64_t at, Direction direction, uint8_t flags,
                      std::span<const IoVec> payload, size_t kept, size_t size) {
  Side& from = of(direction);
  Side& to = of(reverse(direction));
  const bool acknowledges = (flags & kAck) != 0;
  const Headers headers = tcp_headers(
      from.end, to.end,
      {.sequence = from.next, .acknowledgment = acknowledges ? to.next : 0, .flags = flags}, size);
  sink_.packet({.at = at,
                .direction = direction,
                .headers = headers.bytes(),
                .payload = payload,
                .kept = kept,
                .size = size});
  // SYN and FIN have a place in the sequence (RFC 9293 section 3.4).
  from.next += static_cast<uint32_t>(size) + ((flags & (kSyn | kFin)) != 0 ? 1 : 0);
  from.unacknowledged += size;
  if (acknowledges) to.unacknowledged = 0;
}

}  // namespace weft::trace
