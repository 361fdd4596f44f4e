// What the transport says of requests and receives becomes completions, and these are published.

#include "verbs/queue_pair.h"

namespace weft::verbs {
namespace {

WcOpcode opcode_of(rdmap::Operation op) {
  switch (op) {
    case rdmap::Operation::write:
    case rdmap::Operation::write_immediate:
      return WcOpcode::rdma_write;
    case rdmap::Operation::read:
      return WcOpcode::rdma_read;
    case rdmap::Operation::fetch_add:
      return WcOpcode::fetch_add;
    case rdmap::Operation::compare_swap:
      return WcOpcode::comp_swap;
    case rdmap::Operation::local_invalidate:
      return WcOpcode::local_inv;
    case rdmap::Operation::bind_window:
      return WcOpcode::bind_mw;
    default:
      return WcOpcode::send;
  }
}

}  // namespace

void QueuePair::receive_done(const rdmap::Receive& r, Status status, const rdmap::Arrival& a) {
  Completion c{.wr_id = r.wr_id,
               .status = status,
               .opcode = a.write_with_immediate ? WcOpcode::recv_rdma_with_imm : WcOpcode::recv,
               .byte_len = a.length};
  if (a.has_immediate) {
    c.flags |= wc_flag::kWithImm;
    c.imm_or_rkey = a.immediate;
  } else if (a.invalidated) {
    c.flags |= wc_flag::kWithInv;
    c.imm_or_rkey = a.invalidated_stag.value();
  }
  // InfiniBand 11.6.3.2: a message has come before the program knows that the peer is ready.
  if (state() == QpState::rtr && !std::exchange(received_in_rtr_, true)) {
    raise_event(EventType::comm_est);
  }
  receive_done(c, a.solicited);
}

void QueuePair::receive_done(Completion c, bool solicited) {
  c.qpn = number_;
  count_error(c.status);
  add(received_, recv_cq_, {c, solicited});
}

// Where there is no memory for more, what is there goes to its queue now.
void QueuePair::add(std::vector<CompletionQueue::Entry>& to, CompletionQueue& queue,
                    const CompletionQueue::Entry& entry) {
  try {
    to.push_back(entry);
    return;
  } catch (const std::bad_alloc&) {
    lost_room_ |= !queue.push(to);
  }
  to.clear();
  lost_room_ |= !queue.push({&entry, 1});
}

void QueuePair::count_error(Status status) {
  if (status == Status::success) return;
  counters_->counters.completion_errors.add();
  static_assert(stats::kErrorStatuses == static_cast<size_t>(Status::general));
  stats::count(engine_.counters().completion_error, static_cast<size_t>(status) - 1);
}

void QueuePair::count_sent(const rdmap::SendWqe& wqe, Status status) {
  if (status != Status::success || rdmap::is_local(wqe.operation)) return;
  stats::QpCounters& c = counters_->counters;
  if (wqe.operation == rdmap::Operation::read) {
    c.sent(stats::Kind::read);
    c.received(stats::Kind::read, wqe.length);
    return;
  }
  const auto kind = rdmap::is_send(wqe.operation) ? stats::Kind::send : stats::Kind::write;
  c.sent(kind);
  c.sent(kind, wqe.length);
}

void QueuePair::count_received(stats::Kind kind, uint32_t bytes, Status status) {
  if (status != Status::success) return;
  counters_->counters.received(kind);
  counters_->counters.received(kind, bytes);
}

void QueuePair::send_done(const rdmap::SendWqe& wqe, Status status) {
  if (status == Status::success && !wqe.signaled) return;
  count_error(status);
  add(sent_, send_cq_,
      {{.wr_id = wqe.wr_id,
        .status = status,
        .opcode = opcode_of(wqe.operation),
        .byte_len = wqe.length,
        .qpn = number_},
       false});
}

void QueuePair::publish(engine::Token& token) {
  bool room = !std::exchange(lost_room_, false);
  if (!sent_.empty()) {
    room = send_cq_.push(sent_) && room;
    sent_.clear();
  }
  if (!received_.empty()) {
    room = recv_cq_.push(received_) && room;
    received_.clear();
  }
  if (room || state() == QpState::err) return;
  // A program that waits for what was lost would wait for ever. Not here, in the middle of the
  // stream's visit.
  completion_lost_ = true;
  engine_.set_deadline(token, *this, token.now());
}

}  // namespace weft::verbs
