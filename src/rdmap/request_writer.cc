#include "rdmap/request_writer.h"

#include <algorithm>

#include "wire/rdmap_messages.h"
#include "work/pieces.h"

namespace weft::rdmap {
namespace {

using mpa::FpduWriter;
using mpa::TxBatch;
using stats::Kind;
using wire::Opcode;
using wire::TaggedHeader;
using wire::UntaggedHeader;

Opcode send_opcode(const work::SendWqe& w) {
  switch (w.operation) {
    case work::Operation::send_immediate:
      return w.solicited ? Opcode::send_se_imm : Opcode::send_imm;
    case work::Operation::send_invalidate:
      return w.solicited ? Opcode::send_se_inv : Opcode::send_inv;
    default:
      return w.solicited ? Opcode::send_se : Opcode::send;
  }
}

}  // namespace

RequestWriter::RequestWriter(work::Memory& memory, const StreamConfig& config, Coverage& coverage,
                             uint32_t seed)
    : memory_(memory),
      config_(config),
      coverage_(coverage),
      tagged_payload_(max_payload(config, TaggedHeader::kSize)),
      untagged_payload_(max_payload(config, UntaggedHeader::kSize)),
      reads_(config.mpa.ord, seed) {}

void RequestWriter::limit_payload() {
  tagged_payload_ = max_payload(config_, TaggedHeader::kSize);
  untagged_payload_ = max_payload(config_, UntaggedHeader::kSize);
}

RequestWriter::Written RequestWriter::write(work::SendWqe& w, uint64_t index, std::byte* place,
                                            FpduWriter& writer, TxBatch& batch) {
  if (immediate_left_) return write_immediate(w, writer, batch);
  switch (w.operation) {
    case work::Operation::read:
      return write_read(w, index, writer, batch);
    case work::Operation::fetch_add:
    case work::Operation::compare_swap:
      return write_atomic(w, index, writer, batch);
    case work::Operation::write_immediate:
      return write_payload(w, place, writer, batch);
    default:
      if (offset_ == 0 && place != nullptr && w.length <= untagged_payload_ &&
          writer.writes_short(w.length)) {
        return write_short(w, place, writer, batch);
      }
      return write_payload(w, place, writer, batch);
  }
}

RequestWriter::Written RequestWriter::finish(work::SendWqe& w) {
  w.last_message = coverage_.messages();
  in_message_ = false;
  offset_ = 0;
  return Written::message;
}

bool RequestWriter::write_empty(bool asks, FpduWriter& writer, TxBatch& batch) {
  if (!writer.fits(batch, TaggedHeader::kSize, 0, 0)) return false;
  const bool ack_wanted = asks && config_.mpa.extension;
  std::byte header[TaggedHeader::kSize];
  TaggedHeader{
      .control = {.tagged = true, .last = true, .ack_wanted = ack_wanted, .opcode = Opcode::write},
      .stag = Stag{1},
      .to = TaggedOffset{0}}
      .encode(header);
  writer.write(batch, header);
  counters().sent(Kind::write);
  coverage_.sent_message(ack_wanted);
  return true;
}

RequestWriter::Written RequestWriter::write_payload(work::SendWqe& w, std::byte* place,
                                                    FpduWriter& writer, TxBatch& batch) {
  const bool tagged = is_write(w.operation);
  const size_t header_size = wire::ddp_header_size(tagged);
  const uint32_t most = tagged ? tagged_payload_ : untagged_payload_;
  // Behind a short first FPDU the others end where they would have ended without it.
  const uint32_t to_end = offset_ == 0 ? most : most - offset_ % most;
  uint32_t n = std::min(w.length - offset_, to_end);
  if (offset_ == 0 && place != nullptr) n = writer.part(batch, header_size, place, n);
  const bool last = offset_ + n == w.length;
  if (!writer.fits(batch, header_size, n, std::max<size_t>(w.segments, 1))) return Written::no_room;
  PieceList pieces;
  if (offset_ == 0 && place != nullptr) {
    pieces.add(place, n);
  } else if (!local_pieces(memory_, w, offset_, n, work::Access::local_read, pieces).ok()) {
    return Written::lost;
  }
  const uint32_t send_bytes = tagged ? 0 : w.length;
  std::byte header[UntaggedHeader::kSize];
  const bool message_ends_here = last && w.operation != work::Operation::write_immediate;
  const bool asks = message_ends_here && coverage_.asks(w.signaled, send_bytes);
  const wire::Control control{.tagged = tagged,
                              .last = last,
                              .ack_wanted = asks,
                              .opcode = tagged ? Opcode::write : send_opcode(w)};
  if (tagged) {
    TaggedHeader{.control = control, .stag = w.remote_stag, .to = w.remote_to + offset_}.encode(
        header);
  } else {
    send_header(w, control).encode(header);
  }
  if (!writer.write(batch, Bytes{header, header_size}, pieces.pieces())) return Written::lost;
  offset_ += n;
  coverage_.sent_payload(n);
  in_message_ = true;
  const Kind kind = tagged ? Kind::write : Kind::send;
  counters().sent(kind, n);
  if (!last) return Written::part;
  counters().sent(kind);
  coverage_.sent_message(asks, send_bytes);
  if (!tagged) send_msn_ = next(send_msn_);
  if (message_ends_here) return finish(w);
  immediate_left_ = true;
  return Written::part;
}

// Of the next FPDU of a Send.
UntaggedHeader RequestWriter::send_header(const work::SendWqe& w, wire::Control control) const {
  uint32_t word = 0;
  if (w.operation == work::Operation::send_invalidate) word = w.remote_stag.value();
  if (w.operation == work::Operation::send_immediate) word = w.immediate;
  return {.control = control,
          .ulp_word = word,
          .qn = kSendQueue,
          .msn = send_msn_,
          .mo = MessageOffset{offset_}};
}

// A Write or Send that is one FPDU: what write_payload() does, without what it asks for others.
RequestWriter::Written RequestWriter::write_short(work::SendWqe& w, const std::byte* place,
                                                  FpduWriter& writer, TxBatch& batch) {
  using Short = FpduWriter::Short;
  const bool tagged = is_write(w.operation);
  const uint32_t send_bytes = tagged ? 0 : w.length;
  const bool asks = coverage_.asks(w.signaled, send_bytes);
  const wire::Control control{.tagged = tagged,
                              .last = true,
                              .ack_wanted = asks,
                              .opcode = tagged ? Opcode::write : send_opcode(w)};
  const Short written =
      tagged
          ? writer.write_short(
                batch, TaggedHeader{.control = control, .stag = w.remote_stag, .to = w.remote_to},
                place, w.length)
          : writer.write_short(batch, send_header(w, control), place, w.length);
  if (written != Short::written) {
    return written == Short::no_room ? Written::no_room : Written::lost;
  }
  coverage_.sent_payload(w.length);
  coverage_.sent_message(asks, send_bytes);
  const Kind kind = tagged ? Kind::write : Kind::send;
  counters().sent(kind, w.length);
  counters().sent(kind);
  if (!tagged) send_msn_ = next(send_msn_);
  return finish(w);
}

RequestWriter::Written RequestWriter::write_immediate(work::SendWqe& w, FpduWriter& writer,
                                                      TxBatch& batch) {
  if (!writer.fits(batch, UntaggedHeader::kSize, wire::Immediate::kSize, 0))
    return Written::no_room;
  const bool asks = coverage_.asks(w.signaled, 0);
  std::byte header[UntaggedHeader::kSize + wire::Immediate::kSize];
  UntaggedHeader{.control = {.last = true,
                             .ack_wanted = asks,
                             .opcode = w.solicited ? Opcode::immediate_se : Opcode::immediate},
                 .qn = kSendQueue,
                 .msn = send_msn_}
      .encode(header);
  wire::Immediate{w.immediate}.encode(header + UntaggedHeader::kSize);
  writer.write(batch, header);
  coverage_.sent_message(asks);
  send_msn_ = next(send_msn_);
  immediate_left_ = false;
  return finish(w);
}

RequestWriter::Written RequestWriter::write_read(work::SendWqe& w, uint64_t index,
                                                 FpduWriter& writer, TxBatch& batch) {
  constexpr size_t kSize = UntaggedHeader::kSize + wire::ReadRequest::kSize;
  if (!writer.fits(batch, kSize, 0, 0)) return Written::no_room;
  const OutboundRead& read = reads_.add_read(index, read_msn_, w.length);
  std::byte header[kSize];
  UntaggedHeader{.control = {.last = true, .opcode = Opcode::read_request},
                 .qn = kReadRequestQueue,
                 .msn = read_msn_}
      .encode(header);
  wire::ReadRequest{.sink_stag = read.sink,
                    .sink_to = TaggedOffset{0},
                    .size = w.length,
                    .source_stag = w.remote_stag,
                    .source_to = w.remote_to}
      .encode(header + UntaggedHeader::kSize);
  writer.write(batch, header);
  counters().sent(Kind::read);
  read_msn_ = next(read_msn_);
  coverage_.sent_message(false);
  return finish(w);
}

void RequestWriter::write_rtr_read(FpduWriter& writer, TxBatch& batch) {
  const OutboundRead& read = reads_.add_read(OutboundRead::kNoRequest, read_msn_, 0);
  std::byte header[UntaggedHeader::kSize + wire::ReadRequest::kSize];
  UntaggedHeader{.control = {.last = true, .opcode = Opcode::read_request},
                 .qn = kReadRequestQueue,
                 .msn = read_msn_}
      .encode(header);
  wire::ReadRequest{.sink_stag = read.sink, .source_stag = Stag{1}}.encode(header +
                                                                           UntaggedHeader::kSize);
  writer.write(batch, header);
  counters().sent(Kind::read);
  read_msn_ = next(read_msn_);
  coverage_.sent_message(false);
}

RequestWriter::Written RequestWriter::write_atomic(work::SendWqe& w, uint64_t index,
                                                   FpduWriter& writer, TxBatch& batch) {
  constexpr size_t kSize = UntaggedHeader::kSize + wire::AtomicRequest::kSize;
  if (!writer.fits(batch, kSize, 0, 0)) return Written::no_room;
  const OutboundRead& read = reads_.add_atomic(index, read_msn_);
  std::byte header[kSize];
  UntaggedHeader{.control = {.last = true, .opcode = Opcode::atomic_request},
                 .qn = kReadRequestQueue,
                 .msn = read_msn_}
      .encode(header);
  wire::AtomicRequest request{
      .request_id = read.request_id, .stag = w.remote_stag, .to = w.remote_to};
  if (w.operation == work::Operation::fetch_add) {
    request.code = wire::AtomicRequest::Code::fetch_add;
    request.add_swap = w.compare_add;   // mask 0: a plain 64-bit add
    request.compare_mask = UINT64_MAX;  // not looked at: RFC 7306 section 5.2.1
  } else {
    request.code = wire::AtomicRequest::Code::compare_swap;
    request.add_swap = w.swap;
    request.compare = w.compare_add;
    request.add_swap_mask = request.compare_mask = UINT64_MAX;
  }
  request.encode(header + UntaggedHeader::kSize);
  writer.write(batch, header);
  counters().sent(Kind::atomic);
  read_msn_ = next(read_msn_);
  coverage_.sent_message(false);
  return finish(w);
}

}  // namespace weft::rdmap
