// The second half of SendPath: requests as FPDUs.

#include <algorithm>
#include <utility>

#include "rdmap/send_path.h"
#include "wire/rdmap_messages.h"

namespace weft::rdmap {
namespace {

using mpa::FpduWriter;
using mpa::TxBatch;
using stats::Kind;
using wire::Opcode;
using wire::TaggedHeader;
using wire::UntaggedHeader;

Opcode send_opcode(const SendWqe& w) {
  switch (w.operation) {
    case Operation::send_immediate:
      return w.solicited ? Opcode::send_se_imm : Opcode::send_imm;
    case Operation::send_invalidate:
      return w.solicited ? Opcode::send_se_inv : Opcode::send_inv;
    default:
      return w.solicited ? Opcode::send_se : Opcode::send;
  }
}

}  // namespace

bool SendPath::want_ack(const SendWqe& w) {
  if (!config_.mpa.extension) return false;
  // Signaled requests wait for it. Of the others, enough that neither the queue nor the credit runs
  // dry unheard.
  const uint64_t unasked = messages_ + 1 - ack_wanted_at_;
  const bool for_queue = waits_for_delivered_ && (w.signaled || unasked * 2 >= queue_.capacity() ||
                                                  bytes_since_ack_ >= kSendCredit / 2);
  const bool wanted = for_queue || credit_.used() >= kSendCredit / 2;
  if (wanted) ask(messages_ + 1);
  return wanted;
}

// That message carries AW.
void SendPath::ask(uint64_t message) {
  ack_wanted_at_ = message;
  bytes_since_ack_ = 0;
  credit_.asked(message);
}

void SendPath::finish_message(SendWqe& w) {
  w.last_message = messages_;
  in_message_ = false;
  offset_ = 0;
  ++next_;
}

bool SendPath::write_fpdu(FpduWriter& writer, TxBatch& batch) {
  if (!in_message_) {
    if (empty_writes_ == 0 && !std::exchange(started_, false) && !start()) return false;
    if (empty_writes_ > 0) return write_empty_write(writer, batch);
  }
  if (write_request(queue_.at(next_), writer, batch)) {
    ++fpdus_;
    return true;
  }
  // Its memory is gone, and those before it are to be covered.
  return poison_ && owes_empty_write() && write_empty_write(writer, batch);
}

bool SendPath::write_request(SendWqe& w, FpduWriter& writer, TxBatch& batch) {
  if (immediate_left_) return write_immediate(w, writer, batch);
  switch (w.operation) {
    case Operation::read:
      return write_read_request(w, writer, batch);
    case Operation::fetch_add:
    case Operation::compare_swap:
      return write_atomic_request(w, writer, batch);
    default:
      return write_payload(w, writer, batch);
  }
}

bool SendPath::write_empty_write(FpduWriter& writer, TxBatch& batch) {
  if (!writer.fits(batch, TaggedHeader::kSize, 0, 0)) return false;
  std::byte header[TaggedHeader::kSize];
  TaggedHeader{.control = {.tagged = true,
                           .last = true,
                           .ack_wanted = empty_write_ack_ && config_.mpa.extension,
                           .opcode = Opcode::write},
               .stag = Stag{1},
               .to = TaggedOffset{0}}
      .encode(header);
  writer.write(batch, header);
  counters().sent(Kind::write);
  ++messages_;
  if (empty_write_ack_) ask(messages_);
  empty_write_ack_ = false;
  --empty_writes_;
  return true;
}

bool SendPath::write_payload(SendWqe& w, FpduWriter& writer, TxBatch& batch) {
  const bool tagged = is_write(w.operation);
  const size_t header_size = wire::ddp_header_size(tagged);
  const uint32_t n = std::min(w.length - offset_, tagged ? tagged_payload_ : untagged_payload_);
  const bool last = offset_ + n == w.length;
  if (!writer.fits(batch, header_size, n, std::max<size_t>(w.segments, 1))) return false;
  PieceList pieces;
  if (offset_ == 0 && place_ != nullptr) {
    pieces.add(place_, n);
  } else if (!local_pieces(w, offset_, n, Access::local_read, pieces).ok()) {
    lose_source(w);
    return false;
  }
  if (last && !tagged) credit_.sent(w.length);
  const uint64_t asked_at = ack_wanted_at_;
  std::byte header[UntaggedHeader::kSize];
  const bool message_ends_here = last && w.operation != Operation::write_immediate;
  const wire::Control control{.tagged = tagged,
                              .last = last,
                              .ack_wanted = message_ends_here && want_ack(w),
                              .opcode = tagged ? Opcode::write : send_opcode(w)};
  if (tagged) {
    TaggedHeader{.control = control, .stag = w.remote_stag, .to = w.remote_to + offset_}.encode(
        header);
  } else {
    uint32_t word = 0;
    if (w.operation == Operation::send_invalidate) word = w.remote_stag.value();
    if (w.operation == Operation::send_immediate) word = w.immediate;
    UntaggedHeader{.control = control,
                   .ulp_word = word,
                   .qn = kSendQueue,
                   .msn = send_msn_,
                   .mo = MessageOffset{offset_}}
        .encode(header);
  }
  if (!writer.write(batch, Bytes{header, header_size}, pieces.pieces())) {
    ack_wanted_at_ = asked_at;
    lose_source(w);
    return false;
  }
  offset_ += n;
  bytes_since_ack_ += n;
  in_message_ = true;
  const Kind kind = tagged ? Kind::write : Kind::send;
  counters().sent(kind, n);
  if (!last) return true;
  counters().sent(kind);
  ++messages_;
  if (!tagged) send_msn_ = next(send_msn_);
  if (w.operation == Operation::write_immediate) {
    immediate_left_ = true;
  } else {
    finish_message(w);
  }
  return true;
}

// Its memory was deregistered, or is gone. In the middle of a message the stream cannot go on.
void SendPath::lose_source(SendWqe& w) {
  if (!in_message_) {
    poison(Status::local_protection);
    return;
  }
  w.status = Status::local_protection;
  failed_ = true;
}

bool SendPath::write_immediate(SendWqe& w, FpduWriter& writer, TxBatch& batch) {
  if (!writer.fits(batch, UntaggedHeader::kSize, wire::Immediate::kSize, 0)) return false;
  std::byte header[UntaggedHeader::kSize + wire::Immediate::kSize];
  UntaggedHeader{.control = {.last = true,
                             .ack_wanted = want_ack(w),
                             .opcode = w.solicited ? Opcode::immediate_se : Opcode::immediate},
                 .qn = kSendQueue,
                 .msn = send_msn_}
      .encode(header);
  wire::Immediate{w.immediate}.encode(header + UntaggedHeader::kSize);
  writer.write(batch, header);
  ++messages_;
  send_msn_ = next(send_msn_);
  immediate_left_ = false;
  finish_message(w);
  return true;
}

bool SendPath::write_read_request(SendWqe& w, FpduWriter& writer, TxBatch& batch) {
  constexpr size_t kSize = UntaggedHeader::kSize + wire::ReadRequest::kSize;
  if (!writer.fits(batch, kSize, 0, 0)) return false;
  const OutboundRead& read = reads_.add_read(next_, read_msn_, w.length);
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
  ++messages_;
  finish_message(w);
  return true;
}

void SendPath::write_rtr_read(FpduWriter& writer, TxBatch& batch) {
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
  ++messages_;
}

bool SendPath::write_atomic_request(SendWqe& w, FpduWriter& writer, TxBatch& batch) {
  constexpr size_t kSize = UntaggedHeader::kSize + wire::AtomicRequest::kSize;
  if (!writer.fits(batch, kSize, 0, 0)) return false;
  const OutboundRead& read = reads_.add_atomic(next_, read_msn_);
  std::byte header[kSize];
  UntaggedHeader{.control = {.last = true, .opcode = Opcode::atomic_request},
                 .qn = kReadRequestQueue,
                 .msn = read_msn_}
      .encode(header);
  wire::AtomicRequest request{
      .request_id = read.request_id, .stag = w.remote_stag, .to = w.remote_to};
  if (w.operation == Operation::fetch_add) {
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
  ++messages_;
  finish_message(w);
  return true;
}

}  // namespace weft::rdmap
