#include "rdmap/send_path.h"

#include <algorithm>

#include "base/log.h"
#include "wire/rdmap_messages.h"

namespace weft::rdmap {
namespace {

using mpa::FpduWriter;
using mpa::TxBatch;
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

bool needs_extension(Operation op) {
  return op == Operation::write_immediate || op == Operation::send_immediate || is_atomic(op);
}

const char* name(Operation op) {
  switch (op) {
    case Operation::write_immediate:
      return "RDMA Write with immediate";
    case Operation::send_immediate:
      return "Send with immediate";
    default:
      return "atomic";
  }
}

}  // namespace

SendPath::SendPath(Consumer& consumer, const StreamConfig& config, uint32_t seed)
    : consumer_(consumer),
      queue_(consumer.send_queue()),
      config_(config),
      waits_for_delivered_(config.mpa.extension && !config.llp_completion),
      tagged_payload_(max_payload(config, TaggedHeader::kSize)),
      untagged_payload_(max_payload(config, UntaggedHeader::kSize)),
      next_(queue_.head()),
      llp_took_(next_),
      reads_(config.mpa.ord, seed) {}

bool SendPath::ready() {
  if (in_message_ || empty_writes_ > 0) return true;
  return start();
}

// Looks at the request that is next until there is one with something to send that may go now.
bool SendPath::start() {
  while (!poison_ && next_ < queue_.tail()) {
    SendWqe& w = queue_.at(next_);
    if (blocked(w)) return empty_writes_ > 0;
    if (is_local(w.operation)) {
      w.answered = true;
      w.status = consumer_.execute(w);
      w.last_message = messages_;
      if (w.status != Status::success) {
        poison(w.status);
        return empty_writes_ > 0;
      }
      ++next_;
      // It completes behind the requests before it, and no message of its own asks for them.
      if (w.signaled || (next_ - queue_.head()) * 2 >= queue_.capacity()) want_all_covered();
      complete();
      continue;
    }
    if (const Status s = acceptable(w); s != Status::success) {
      poison(s);
      return empty_writes_ > 0;
    }
    return true;
  }
  if (closing_) want_all_covered();
  return empty_writes_ > 0;
}

bool SendPath::blocked(const SendWqe& w) {
  if (w.fence && reads_.outstanding() > 0) return true;
  if (has_response(w.operation) && reads_.full() && reads_.limit() > 0) return true;
  // wire.md 4.10: at most the credit beyond what is covered, or one message where it is larger.
  if (!config_.mpa.extension || !is_send(w.operation) || credit_.used() == 0 ||
      credit_.used() + w.length <= kSendCredit) {
    return false;
  }
  // Perhaps nobody asked yet: half the credit was not reached, and this message is larger than the
  // rest of it.
  want_all_covered();
  return true;
}

// Errors that the request carries in itself, found before its first byte goes out.
Status SendPath::acceptable(const SendWqe& w) {
  if (needs_extension(w.operation) && !config_.mpa.extension) {
    WEFT_LOG(warn,
             "%s is not possible on this connection: plain iWARP has none, and the peer did not "
             "agree to "
             "weft's extension. Run weft on both sides (and leave WEFT_EXT=auto)",
             name(w.operation));
    return Status::local_qp_operation;
  }
  if (has_response(w.operation) && reads_.limit() == 0) {
    WEFT_LOG(warn,
             "RDMA Read is not possible on this connection: the peer allows no inbound reads (its "
             "IRD is 0)");
    return Status::local_qp_operation;
  }
  const Access need = has_response(w.operation) ? Access::local_write : Access::local_read;
  PieceList pieces;
  const uint32_t length = is_atomic(w.operation) ? kAtomicBytes : w.length;
  return local_pieces(w, 0, length, need, pieces).ok() ? Status::success : Status::local_protection;
}

// The request fails, but those before it may still succeed: it is reported when its turn comes.
void SendPath::poison(Status status) {
  poison_ = status;
  want_all_covered();
  complete();
}

void SendPath::want_all_covered() {
  if (config_.mpa.extension && ack_wanted_at_ < messages_ && !empty_write_ack_) {
    add_empty_write(true);
  }
}

Result<Ok, MemoryFault> SendPath::local_pieces(const SendWqe& w, uint32_t offset, uint32_t length,
                                               Access need, PieceList& out) {
  if (w.inlined) {
    out.add(const_cast<std::byte*>(w.payload()) + offset, length);
    return Ok{};
  }
  for (uint32_t i = 0; i < w.segments && length > 0; ++i) {
    const LocalSegment& s = w.segment()[i];
    if (offset >= s.length) {
      offset -= s.length;
      continue;
    }
    const uint32_t n = std::min(length, s.length - offset);
    const auto p = consumer_.memory().local(s.lkey, s.address + offset, n, need);
    if (!p.ok()) return fail(p.error());
    out.add(*p, n);
    offset = 0;
    length -= n;
  }
  if (length > 0) return fail(MemoryFault::bounds);
  return Ok{};
}

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
    if (empty_writes_ == 0 && !start()) return false;
    if (empty_writes_ > 0) return write_empty_write(writer, batch);
  }
  const bool written = write_request(queue_.at(next_), writer, batch);
  if (written) ++fpdus_;
  return written;
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
  writer.write(batch, header, {});
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
  if (!local_pieces(w, offset_, n, Access::local_read, pieces).ok()) {
    // Deregistered in the middle of the message: the stream cannot go on.
    w.status = Status::local_protection;
    failed_ = true;
    return false;
  }
  if (last && !tagged) credit_.sent(w.length);
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
  writer.write(batch, Bytes{header, header_size}, pieces.pieces());
  offset_ += n;
  bytes_since_ack_ += n;
  in_message_ = true;
  if (!last) return true;
  ++messages_;
  if (!tagged) send_msn_ = next(send_msn_);
  if (w.operation == Operation::write_immediate) {
    immediate_left_ = true;
  } else {
    finish_message(w);
  }
  return true;
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
  writer.write(batch, header, {});
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
  writer.write(batch, header, {});
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
  writer.write(batch, header, {});
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
    request.add_swap = w.compare_add;  // mask 0: a plain 64-bit add
  } else {
    request.code = wire::AtomicRequest::Code::compare_swap;
    request.add_swap = w.swap;
    request.compare = w.compare_add;
    request.add_swap_mask = request.compare_mask = UINT64_MAX;
  }
  request.encode(header + UntaggedHeader::kSize);
  writer.write(batch, header, {});
  read_msn_ = next(read_msn_);
  ++messages_;
  finish_message(w);
  return true;
}

void SendPath::llp_took_all() {
  llp_took_ = next_;
  if (!waits_for_delivered_) complete();
}

void SendPath::covered(uint64_t run) {
  if (run <= covered_) return;
  rnr_deadline_ = Time::never();
  covered_ = run;
  credit_.covered(run);
  complete();
}

void SendPath::receiver_not_ready(uint8_t timer_code, Time now) {
  if (config_.rnr_retry == 7) return;  // for ever
  if (covered_ == messages_) return;   // there is no message that could wait
  rnr_deadline_ = now + rnr_time(timer_code) * (config_.rnr_retry + 1);
}

void SendPath::answered() {
  const uint64_t request = reads_.oldest()->request;
  reads_.pop_oldest();
  if (request == OutboundRead::kNoRequest) return;
  SendWqe& w = queue_.at(request);
  w.answered = true;
  // The peer answers nothing before all messages ahead of it are placed and consumed
  // (wire.md 4.9, 4.10), so the answer covers them. Requests that did not ask to be covered would
  // otherwise keep this one from completing.
  if (waits_for_delivered_) covered(w.last_message);
  complete();
}

bool SendPath::covers(const SendWqe& w, uint64_t index) const {
  if (has_response(w.operation) || is_local(w.operation)) return w.answered;
  return waits_for_delivered_ ? w.last_message <= covered_ : index < llp_took_;
}

void SendPath::complete() {
  for (uint64_t head = queue_.head(); head < next_; ++head) {
    SendWqe& w = queue_.at(head);
    if (!covers(w, head)) return;
    consumer_.send_done(w, Status::success);
    queue_.free_head();
  }
  if (poison_ && queue_.head() == next_) {
    queue_.at(next_).status = *poison_;
    failed_ = true;
  }
}

void SendPath::blame_oldest(Status status) {
  if (queue_.head() < queue_.tail()) queue_.at(queue_.head()).status = status;
}

void SendPath::blame(uint64_t request, Status status) {
  if (request >= queue_.head() && request < next_) queue_.at(request).status = status;
}

void SendPath::blame_waiting(Status status) {
  for (uint64_t i = queue_.head(); i < next_; ++i) {
    SendWqe& w = queue_.at(i);
    if (is_local(w.operation) || w.last_message <= covered_) continue;
    w.status = status;
    return;
  }
  blame_oldest(status);
}

bool SendPath::may_gather() const {
  constexpr uint64_t kMostWaiting = 48;  // requests
  constexpr uint32_t kSmall = 1024;      // bytes
  constexpr uint64_t kUnderWay = 4;      // requests that the program waits for
  if (!waits_for_delivered_ || in_message_ || ack_wanted_at_ < covered_ + kUnderWay) return false;
  const uint64_t tail = queue_.tail();
  return tail - next_ < kMostWaiting && tail > next_ && queue_.at(tail - 1).length <= kSmall;
}

bool SendPath::drained() const {
  return queue_.head() == queue_.tail() && reads_.outstanding() == 0 && empty_writes_ == 0;
}

}  // namespace weft::rdmap
