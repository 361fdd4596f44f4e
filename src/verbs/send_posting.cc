#include "verbs/send_posting.h"

#include <cstring>

#include "device/device.h"
#include "verbs/adapter.h"
#include "verbs/destination.h"

namespace weft::verbs {
namespace {

bool supports(const QpTypeTraits& type, const SendRequest& r) {
  return type.has(r.operation) && type.addressed == (r.handle != nullptr);
}

// The payload of a request that has not exactly one segment. A call of its own, for most have.
[[gnu::noinline]] void fill(work::SendWqe& w, const SendRequest& r) {
  if (!r.inlined) {
    if (r.count > 0) std::memcpy(w.payload(), r.segments, r.count * sizeof(LocalSegment));
    return;
  }
  std::byte* p = w.payload();
  for (uint32_t i = 0; i < r.count; ++i) {
    std::memcpy(p, reinterpret_cast<const void*>(r.segments[i].address), r.segments[i].length);
    p += r.segments[i].length;
  }
}

}  // namespace

SendPosting::SendPosting(QueuePair& qp) : qp_(qp) {
  // Here nothing is held yet. What binds leave behind is no more than what posts ask for.
  qp_.adapter().memory().tidy();
  qp_.send_lock().lock();
}

SendPosting::~SendPosting() {
  if (locked_) qp_.send_lock().unlock();
}

Failure<Errc> SendPosting::refuse(const PostFault& fault) {
  fault_ = fault;
  return fail(fault.rule == PostFault::Rule::full ? Errc::no_memory : Errc::invalid);
}

// nullptr, and fault_ says why.
work::SendWqe* SendPosting::reserve() {
  // InfiniBand 10.3.1: requests may be posted from RTS on; in SQD they wait, in ERR they are
  // flushed.
  const QpState state = qp_.state();
  if (state < QpState::rts) {
    fault_ = {.rule = PostFault::Rule::state, .asked = static_cast<uint64_t>(state)};
    return nullptr;
  }
  work::SendWqe* w = qp_.send_queue().reserve(added_);
  if (w == nullptr) fault_ = {.rule = PostFault::Rule::full, .limit = qp_.limits().max_send_wr};
  return w;
}

// For every request, and nearly always nothing.
[[gnu::always_inline]] inline PostFault SendPosting::fault_of(const SendRequest& r,
                                                              uint64_t length) const {
  using Rule = PostFault::Rule;
  const QpLimits& limits = qp_.limits();
  // Inline data are copied, and need no room for their segments.
  const uint32_t segments = r.inlined ? device::kMaxSge : limits.max_send_sge;
  if (r.count > segments) return {.rule = Rule::segments, .asked = r.count, .limit = segments};
  if (length > work::kMostMessage) {
    return {.rule = Rule::message_length, .asked = length, .limit = work::kMostMessage};
  }
  if (r.inlined && length > limits.max_inline) {
    return {.rule = Rule::inline_length, .asked = length, .limit = limits.max_inline};
  }
  if (r.inlined && work::has_response(r.operation)) return {.rule = Rule::inline_operation};
  if (!supports(qp_.traits(), r)) return {.rule = Rule::operation};
  if (work::is_atomic(r.operation) && length < work::kAtomicBytes) {
    return {.rule = Rule::atomic_length, .asked = length, .limit = work::kAtomicBytes};
  }
  return {};
}

Outcome<Ok> SendPosting::add(const SendRequest& r) {
  uint64_t length = 0;
  // A count beyond the limit may be no count at all: nothing is read then.
  if (r.count <= device::kMaxSge) {
    for (uint32_t i = 0; i < r.count; ++i) length += r.segments[i].length;
  }
  if (const PostFault fault = fault_of(r, length); fault.rule != PostFault::Rule::none) {
    return refuse(fault);
  }
  work::SendWqe* w = reserve();
  if (w == nullptr) return refuse(fault_);
  *w = {.wr_id = r.wr_id,
        .operation = r.operation,
        .signaled = r.signaled || qp_.signal_all(),
        .fence = r.fence,
        .solicited = r.solicited,
        .inlined = r.inlined,
        .segments = static_cast<uint8_t>(r.inlined ? 0 : r.count),
        .length = work::is_atomic(r.operation) ? work::kAtomicBytes : static_cast<uint32_t>(length),
        .remote_stag = r.remote_stag,
        .remote_to = r.remote_to,
        .immediate = r.immediate,
        .compare_add = r.compare_add,
        .swap = r.swap};
  if (r.handle != nullptr) {
    store_destination(qp_.send_queue().extra_of(*w), *r.handle, r.remote_qpn, r.remote_q_key);
  }
  if (r.count == 1 && !r.inlined) {
    *w->segment() = *r.segments;
  } else {
    fill(*w, r);
  }
  ++added_;
  return Ok{};
}

Outcome<Ok> SendPosting::add_bind(const BindRequest& bind, uint64_t wr_id, bool signaled,
                                  bool fence) {
  if (!qp_.traits().has(work::Operation::bind_window))
    return refuse({.rule = PostFault::Rule::operation});
  work::SendWqe* w = reserve();
  if (w == nullptr) return refuse(fault_);
  *w = {.wr_id = wr_id,
        .operation = work::Operation::bind_window,
        .signaled = signaled || qp_.signal_all(),
        .fence = fence};
  static_assert(sizeof(BindRequest) <= work::SendQueue::kLeastRoom, "any slot has room for it");
  std::memcpy(w->payload(), &bind, sizeof bind);
  ++added_;
  return Ok{};
}

Outcome<Ok> SendPosting::add_local_invalidate(Stag stag, uint64_t wr_id, bool signaled,
                                              bool fence) {
  if (!qp_.traits().has(work::Operation::local_invalidate))
    return refuse({.rule = PostFault::Rule::operation});
  work::SendWqe* w = reserve();
  if (w == nullptr) return refuse(fault_);
  *w = {.wr_id = wr_id,
        .operation = work::Operation::local_invalidate,
        .signaled = signaled || qp_.signal_all(),
        .fence = fence,
        .remote_stag = stag};
  ++added_;
  return Ok{};
}

bool SendPosting::publish() {
  if (added_ > 0) qp_.send_queue().publish(added_);
  qp_.send_lock().unlock();
  locked_ = false;
  return added_ > 0;
}

void SendPosting::commit() {
  if (publish()) qp_.ring();
}

}  // namespace weft::verbs
