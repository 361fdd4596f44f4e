// The way in: requests and receives of the program enter the queues. Any thread; no allocation, no
// system call but the send.

#include <cstring>

#include "device/device.h"
#include "verbs/queue_pair.h"
#include "wdp/ud_consumer.h"

namespace weft::verbs {

QueuePair::Posting::Posting(QueuePair& qp) : qp_(qp) {
  // Here nothing is held yet. What binds leave behind is no more than what posts ask for.
  qp_.adapter_.memory().tidy();
  qp_.send_lock_.lock();
}

QueuePair::Posting::~Posting() {
  if (locked_) qp_.send_lock_.unlock();
}

// What the type of the queue pair can do: of UC no atomics (wire.md 9.3), of UD Sends alone.
bool QueuePair::supports(const SendRequest& r) const {
  switch (type_) {
    case QpType::rc:
      return r.handle == nullptr;
    case QpType::uc:
      return r.handle == nullptr && !rdmap::is_atomic(r.operation);
    case QpType::ud:
      return r.handle != nullptr && (r.operation == rdmap::Operation::send ||
                                     r.operation == rdmap::Operation::send_immediate);
  }
  return false;
}

rdmap::SendWqe* QueuePair::Posting::reserve(Outcome<Ok>& why) {
  // InfiniBand 10.3.1: requests may be posted from RTS on; in SQD they wait, in ERR they are
  // flushed.
  if (qp_.state() < QpState::rts) {
    why = fail(Errc::invalid);
    return nullptr;
  }
  rdmap::SendWqe* w = qp_.send_queue_.reserve(added_);
  if (w == nullptr) why = fail(Errc::no_memory);
  return w;
}

Outcome<Ok> QueuePair::Posting::add(const SendRequest& r) {
  if (r.count > qp_.limits_.max_send_sge && !(r.inlined && r.count <= device::kMaxSge)) {
    return fail(Errc::invalid);
  }
  uint64_t length = 0;
  for (uint32_t i = 0; i < r.count; ++i) length += r.segments[i].length;
  if (length > rdmap::kMostMessage) return fail(Errc::invalid);
  if (r.inlined && (length > qp_.limits_.max_inline || rdmap::has_response(r.operation))) {
    return fail(Errc::invalid);
  }
  if (!qp_.supports(r)) return fail(Errc::invalid);
  if (rdmap::is_atomic(r.operation) && length < rdmap::kAtomicBytes) return fail(Errc::invalid);
  Outcome<Ok> why{Ok{}};
  rdmap::SendWqe* w = reserve(why);
  if (w == nullptr) return why;
  *w = {
      .wr_id = r.wr_id,
      .operation = r.operation,
      .signaled = r.signaled || qp_.signal_all_,
      .fence = r.fence,
      .solicited = r.solicited,
      .inlined = r.inlined,
      .segments = static_cast<uint8_t>(r.inlined ? 0 : r.count),
      .length = rdmap::is_atomic(r.operation) ? rdmap::kAtomicBytes : static_cast<uint32_t>(length),
      .remote_stag = r.remote_stag,
      .remote_to = r.remote_to,
      .immediate = r.immediate,
      .compare_add = r.compare_add,
      .swap = r.swap};
  if (r.handle != nullptr) {
    static_assert(alignof(wdp::UdDestination) <= 8 && sizeof(wdp::UdDestination) % 8 == 0,
                  "it stands at the end of a slot");
    new (qp_.send_queue_.extra_of(*w)) wdp::UdDestination{.path = r.handle->to(r.remote_qpn),
                                                          .qpn = r.remote_qpn,
                                                          .q_key = r.remote_q_key,
                                                          .room = r.handle->room};
  }
  if (r.inlined) {
    std::byte* p = w->payload();
    for (uint32_t i = 0; i < r.count; ++i) {
      std::memcpy(p, reinterpret_cast<const void*>(r.segments[i].address), r.segments[i].length);
      p += r.segments[i].length;
    }
  } else if (r.count > 0) {
    std::memcpy(w->payload(), r.segments, r.count * sizeof(LocalSegment));
  }
  ++added_;
  return Ok{};
}

Outcome<Ok> QueuePair::Posting::add_bind(const BindRequest& bind, uint64_t wr_id, bool signaled,
                                         bool fence) {
  if (qp_.type_ == QpType::ud) return fail(Errc::invalid);
  Outcome<Ok> why{Ok{}};
  rdmap::SendWqe* w = reserve(why);
  if (w == nullptr) return why;
  *w = {.wr_id = wr_id,
        .operation = rdmap::Operation::bind_window,
        .signaled = signaled || qp_.signal_all_,
        .fence = fence};
  static_assert(sizeof(BindRequest) <= 48, "the room that SendQueue keeps for a bind");
  std::memcpy(w->payload(), &bind, sizeof bind);
  ++added_;
  return Ok{};
}

Outcome<Ok> QueuePair::Posting::add_local_invalidate(Stag stag, uint64_t wr_id, bool signaled,
                                                     bool fence) {
  if (qp_.type_ == QpType::ud) return fail(Errc::invalid);
  Outcome<Ok> why{Ok{}};
  rdmap::SendWqe* w = reserve(why);
  if (w == nullptr) return why;
  *w = {.wr_id = wr_id,
        .operation = rdmap::Operation::local_invalidate,
        .signaled = signaled || qp_.signal_all_,
        .fence = fence,
        .remote_stag = stag};
  ++added_;
  return Ok{};
}

bool QueuePair::Posting::publish() {
  if (added_ > 0) qp_.send_queue_.publish(added_);
  qp_.send_lock_.unlock();
  locked_ = false;
  return added_ > 0;
}

void QueuePair::Posting::commit() {
  if (publish()) qp_.ring();
}

Outcome<Ok> QueuePair::post_receive(const ReceiveRequest* requests, size_t count, size_t& posted) {
  posted = 0;
  if (srq_ != nullptr || state() == QpState::reset) return fail(Errc::invalid);
  Outcome<Ok> outcome{Ok{}};
  receive_lock_.lock();
  for (; posted < count; ++posted) {
    outcome = receive_queue_.post(requests[posted]);
    if (!outcome.ok()) break;
  }
  receive_lock_.unlock();
  // A message may wait for it, or a flush.
  if (posted > 0 && receive_wanted()) engine_.ring(*this);
  return outcome;
}

}  // namespace weft::verbs
