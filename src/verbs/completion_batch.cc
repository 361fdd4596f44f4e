#include "verbs/completion_batch.h"

#include <new>
#include <utility>

namespace weft::verbs {
namespace {

WcOpcode opcode_of(work::Operation op) {
  switch (op) {
    case work::Operation::write:
    case work::Operation::write_immediate:
      return WcOpcode::rdma_write;
    case work::Operation::read:
      return WcOpcode::rdma_read;
    case work::Operation::fetch_add:
      return WcOpcode::fetch_add;
    case work::Operation::compare_swap:
      return WcOpcode::comp_swap;
    case work::Operation::local_invalidate:
      return WcOpcode::local_inv;
    case work::Operation::bind_window:
      return WcOpcode::bind_mw;
    default:
      return WcOpcode::send;
  }
}

}  // namespace

Completion completion_of(const work::SendWqe& wqe, Status status) {
  return {.wr_id = wqe.wr_id,
          .status = status,
          .opcode = opcode_of(wqe.operation),
          .byte_len = wqe.length};
}

Completion completion_of(const work::Receive& r, Status status, const work::Arrival& a) {
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
  return c;
}

// Where there is no memory for more, what is there goes to its queue now.
void CompletionBatch::add(std::vector<CompletionQueue::Entry>& to, CompletionQueue& queue,
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

bool CompletionBatch::publish_all() {
  bool room = !std::exchange(lost_room_, false);
  if (!sent_.empty()) {
    room = send_cq_.push(sent_) && room;
    sent_.clear();
  }
  if (!received_.empty()) {
    room = recv_cq_.push(received_) && room;
    received_.clear();
  }
  return room;
}

void CompletionBatch::clear() {
  sent_.clear();
  received_.clear();
}

}  // namespace weft::verbs
