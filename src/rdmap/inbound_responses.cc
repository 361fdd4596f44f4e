#include "rdmap/inbound_responses.h"

#include <algorithm>

#include "base/guarded.h"
#include "wire/ddp_header.h"
#include "wire/rdmap_messages.h"

namespace weft::rdmap {

namespace term = wire::term;
using ddp::Segment;
using wire::Refusal;

mpa::Verdict InboundResponses::open_read(const Segment& s) {
  const OutboundRead* read = requests_.reads().oldest();
  if (read == nullptr || read->atomic || read->sink != s.stag) {
    return fail(term::kTaggedInvalidStag.because(Refusal::read_response_unasked));
  }
  if (s.to.value() != read->received || s.payload > read->length - read->received ||
      s.control.last != (s.payload == read->length - read->received)) {
    return fail(term::kTaggedBounds.because(Refusal::read_response_misfit));
  }
  return Ok{};
}

mpa::Verdict InboundResponses::where_read(size_t offset, size_t length, PieceList& places) {
  const OutboundRead& read = *requests_.reads().oldest();
  // The RTR read wants no bytes, so a response with bytes belongs to a request.
  if (!requests_
           .sink_pieces(read, read.received + static_cast<uint32_t>(offset),
                        static_cast<uint32_t>(length), places)
           .ok()) {
    return fail(lose_sink(read));
  }
  return Ok{};
}

wire::TermError InboundResponses::unreachable() {
  return lose_sink(*requests_.reads().oldest());
}

// The request that wanted these bytes.
wire::TermError InboundResponses::lose_sink(const OutboundRead& read) {
  requests_.blame(read.request, work::Status::local_protection);
  return term::kLocalCatastrophic.because(Refusal::own_sink_memory);
}

void InboundResponses::read_placed(const Segment& s) {
  requests_.reads().oldest()->received += s.payload;
  if (s.control.last) requests_.answered();
}

mpa::Verdict InboundResponses::deliver_atomic(const std::byte* response) {
  const auto parsed = wire::AtomicResponse::parse(response);
  const OutboundRead* read = requests_.reads().oldest();
  if (read == nullptr || !read->atomic || read->request_id != parsed.request_id) {
    return fail(term::kOperationUnspecified.because(Refusal::atomic_response_unasked));
  }
  PieceList places;
  if (!requests_.sink_pieces(*read, 0, work::kAtomicBytes, places).ok()) {
    return fail(lose_sink(*read));
  }
  const auto* from = reinterpret_cast<const std::byte*>(&parsed.original);
  for (const IoVec& piece : places.pieces()) {
    if (!copy_guarded(piece.iov_base, from, piece.iov_len)) return fail(lose_sink(*read));
    from += piece.iov_len;
  }
  requests_.answered();
  return Ok{};
}

mpa::Verdict InboundResponses::open_report(const Segment& s) {
  if (s.payload != 0 || !s.control.last) {
    return fail(term::kTaggedBounds.because(Refusal::delivered_malformed));
  }
  return Ok{};
}

mpa::Verdict InboundResponses::deliver_report(const Segment& s) {
  const uint32_t stag = s.stag.value();
  // More than was ever sent: the two sides count differently, and no completion could be trusted.
  if (s.to.value() > requests_.messages()) {
    return fail(term::kOperationCatastrophicStream.because(Refusal::delivered_beyond_sent));
  }
  report_ = DeliveredReport{.run = std::max(s.to.value(), report_ ? report_->run : 0)};
  if ((stag & wire::kDeliveredWaiting) != 0) {
    report_->waits_with_timer = static_cast<uint8_t>(stag & 31);
  }
  return Ok{};
}

}  // namespace weft::rdmap
