#include "wdp/uc_send_path.h"

#include <algorithm>

#include "base/log.h"
#include "wdp/pieces.h"
#include "wdp/read_requester.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpData;
using work::Access;
using work::Operation;
using work::SendWqe;
using work::Status;

namespace {

bool has_immediate(const SendWqe& w) {
  return w.operation == Operation::write_immediate || w.operation == Operation::send_immediate;
}

// spec/wdp-uc 2.2: immediate data is a flag on every segment, no opcode of its own.
Opcode opcode_of(const SendWqe& w) {
  switch (w.operation) {
    case Operation::write:
    case Operation::write_immediate:
      return Opcode::write;
    case Operation::send_invalidate:
      return w.solicited ? Opcode::send_se_inv : Opcode::send_inv;
    default:
      return w.solicited ? Opcode::send_se : Opcode::send;
  }
}

// A shorter last segment ends the train (spec/wdp 2.7). Messages of a few datagrams that follow
// each other are cut evenly where they can be, so that several share one: a system call costs both
// sides more than a datagram does.
uint16_t even_stride(uint32_t length, uint16_t most) {
  constexpr uint32_t kFew = 16;
  const uint32_t least = (length + most - 1) / most;
  if (least < 2 || least > kFew) return most;
  for (uint32_t n = least; n <= least + least / 3 + 1; ++n) {
    if (length % n == 0) return static_cast<uint16_t>(length / n);
  }
  return most;
}

}  // namespace

UcSendPath::UcSendPath(UcConsumer& consumer, const UcParameters& parameters, UcWriter& writer,
                       ReadRequester& reads, UcCounters& counters)
    : consumer_(consumer),
      queue_(consumer.send_queue()),
      parameters_(parameters),
      writer_(writer),
      reads_(reads),
      counters_(counters),
      next_(queue_.head()),
      llp_took_(next_) {}

bool UcSendPath::ready(const Train* train) {
  return in_message_ || start(train);
}

// Looks at the request that is next until there is one that has datagrams to send.
bool UcSendPath::start(const Train* train) {
  while (!poison_ && !stopped_ && !held_ && next_ < end()) {
    SendWqe& w = queue_.at(next_);
    // InfiniBand 10.8.3.3: a fenced request waits for all Reads before it.
    if (w.fence && reads_.outstanding() > 0) return false;
    if (w.operation == Operation::read && parameters_.reads && parameters_.ord > 0 &&
        reads_.full()) {
      return false;
    }
    if (work::is_local(w.operation)) {
      // It may close a window, and then the memory is the program's. An answer to a Read from there
      // may be in the train, by reference: it goes out first.
      if (train != nullptr && train->refers()) return false;
      if (!execute(w)) return false;
      continue;
    }
    if (const Status s = acceptable(w); s != Status::success) {
      poison(s);
      return false;
    }
    if (w.operation != Operation::read) return true;
    reads_.add(next_, w);
    ++next_;
  }
  return false;
}

bool UcSendPath::execute(SendWqe& w) {
  w.answered = true;
  if (const Status done = consumer_.execute(w); done != Status::success) {
    poison(done);
    return false;
  }
  ++next_;
  complete();
  return true;
}

// Errors that the request carries in itself, found before its first datagram goes out.
Status UcSendPath::acceptable(const SendWqe& w) {
  const bool read = w.operation == Operation::read;
  // spec/wdp-uc 2.2: Reads are idempotent, atomics are not; UC has none.
  if (work::is_atomic(w.operation)) return Status::local_qp_operation;
  if (read && (!parameters_.reads || parameters_.ord == 0)) {
    WEFT_LOG(warn, "RDMA Read is not possible on this connection: the peer did not agree to any");
    return Status::local_qp_operation;
  }
  if (has_immediate(w) && !parameters_.immediate) {
    WEFT_LOG(warn, "immediate data is not possible on this connection: the peer did not agree");
    return Status::local_qp_operation;
  }
  const uint16_t stride = parameters_.stride();
  if (stride == 0) return Status::local_length;
  // No receiver keeps track of more (spec/wdp-uc 4.4). Plain Writes need nobody to.
  const bool tracked = read || has_immediate(w) || work::is_send(w.operation);
  if (tracked && (uint64_t{w.length} + stride - 1) / stride > kMostSegmentsOfMessage) {
    return Status::local_length;
  }
  PieceList pieces;
  const Access need = read ? Access::local_write : Access::local_read;
  if (!local_pieces(consumer_.memory(), w, 0, w.length, need, pieces).ok()) {
    return Status::local_protection;
  }
  return Status::success;
}

void UcSendPath::poison(Status status) {
  poison_ = status;
  complete();
}

void UcSendPath::fill(Train& train) {
  while (ready(&train)) {
    if (!write_segment(queue_.at(next_), train)) return;
  }
}

bool UcSendPath::write_segment(SendWqe& w, Train& train) {
  if (!in_message_) {
    const bool alone =
        train.empty() && (next_ + 1 >= end() || queue_.at(next_ + 1).length != w.length);
    stride_ = parameters_.stride();
    if (!alone && stride_ > 0) stride_ = even_stride(w.length, stride_);
  }
  const uint32_t n = std::min<uint32_t>(w.length - offset_, stride_);
  if (!writer_.fits(train, n)) return false;
  PieceList pieces;
  if (!local_pieces(consumer_.memory(), w, offset_, n, Access::local_read, pieces).ok()) {
    lose_source();
    return false;
  }
  if (!in_message_) {
    in_message_ = true;
    msn_ = writer_.begin_message();
  }
  const bool immediate = has_immediate(w);
  WdpData d{.flags = {.immediate = immediate},
            .msn = msn_,
            .mo = MessageOffset{offset_},
            .mlen = w.length,
            .last = offset_ + n == w.length,
            .write_se = w.operation == Operation::write_immediate && w.solicited,
            .opcode = opcode_of(w),
            .stride = stride_};
  if (immediate) d.imm_or_read = w.immediate;
  if (work::is_write(w.operation)) {
    d.stag = w.remote_stag;
    d.to = w.remote_to + offset_;
  } else if (w.operation == Operation::send_invalidate) {
    d.stag = w.remote_stag;
  }
  if (!writer_.write(train, d, pieces.pieces())) {
    lose_source();
    return false;
  }
  in_train_ = true;
  offset_ += n;
  if (d.last) finish_message();
  return true;
}

// Deregistered or gone, perhaps in the middle of the message: the peer never gets the rest.
void UcSendPath::lose_source() {
  drop_message();
  poison(Status::local_protection);
}

void UcSendPath::finish_message() {
  ++counters_.messages_sent;
  writer_.end_message();
  in_message_ = false;
  offset_ = 0;
  ++next_;
}

void UcSendPath::drop_message() {
  if (in_message_) writer_.end_message();
  in_message_ = false;
  offset_ = 0;
}

void UcSendPath::stop() {
  drop_message();
  stopped_ = true;
}

void UcSendPath::resume() {
  stopped_ = failed_ = false;
  poison_.reset();
  next_ = llp_took_ = queue_.head();
}

void UcSendPath::give_up_message() {
  if (!in_message_) return;
  finish_message();
  if (in_train_) return;  // llp_took_all() follows
  llp_took_ = next_;
  complete();
}

void UcSendPath::llp_took_all() {
  in_train_ = false;
  llp_took_ = next_;
  complete();
}

void UcSendPath::complete() {
  if (stopped_) return;
  for (uint64_t head = queue_.head(); head < next_; ++head) {
    SendWqe& w = queue_.at(head);
    const bool by_answer = work::has_response(w.operation) || work::is_local(w.operation);
    if (by_answer ? !w.answered : head >= llp_took_) return;
    consumer_.send_done(w, w.status);
    queue_.free_head();
  }
  if (poison_ && queue_.head() == next_) {
    queue_.at(next_).status = *poison_;
    failed_ = true;
  }
}

bool UcSendPath::own_memory_lost() {
  if (!in_train_) return false;
  in_train_ = false;
  const uint64_t end = in_message_ ? next_ + 1 : next_;
  drop_message();
  if (stopped_) return true;
  const uint64_t lost =
      first_without_memory(consumer_.memory(), queue_, std::max(queue_.head(), llp_took_), end);
  if (lost == end) return true;
  next_ = llp_took_ = lost;
  poison(Status::local_protection);
  return true;
}

}  // namespace weft::wdp
