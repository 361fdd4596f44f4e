#include "sdp/rdma/queue_pair.h"

namespace weft::sdp {

bool QueuePair::create(ibv_pd* pd, ibv_cq* queue) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = queue;
  attributes.recv_cq = queue;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = kSends,
                    .max_recv_wr = kReceives,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = kInline};
  return rdma_create_qp(id_, pd, &attributes) == 0;
}

void QueuePair::destroy() {
  if (exists()) rdma_destroy_qp(id_);
}

void QueuePair::destroy_id() {
  (void)rdma_destroy_id(id_);
  id_ = nullptr;
}

Verbs<ibv_mr> QueuePair::lend(const std::byte* memory, size_t bytes, int access) const {
  if (id_ == nullptr) return nullptr;
  return Verbs<ibv_mr>{ibv_reg_mr(id_->pd, const_cast<std::byte*>(memory), bytes, access)};
}

bool QueuePair::post_receive(const Local& buffer, uint8_t number) {
  ibv_sge sge{
      .addr = reinterpret_cast<uintptr_t>(buffer.at), .length = buffer.length, .lkey = buffer.key};
  ibv_recv_wr wr{
      .wr_id = Completions::work_id(member_, static_cast<uint8_t>(Work::receive), number),
      .sg_list = &sge,
      .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  return exists() && ibv_post_recv(id_->qp, &wr, &bad) == 0;
}

bool QueuePair::send(const Local& message) {
  return post(Work::data, IBV_WR_SEND, message, {});
}

bool QueuePair::send_inline(const std::byte* message, uint32_t length) {
  return post(Work::control, IBV_WR_SEND, {message, length}, {}, IBV_SEND_INLINE);
}

bool QueuePair::read(const Local& to, const Remote& from) {
  return post(Work::read, IBV_WR_RDMA_READ, to, from);
}

bool QueuePair::write(const Local& from, const Remote& to) {
  if (!post(Work::write, IBV_WR_RDMA_WRITE, from, to)) return false;
  ++writes_;
  return true;
}

bool QueuePair::post(Work work, ibv_wr_opcode opcode, const Local& local, const Remote& remote,
                     unsigned flags) {
  ibv_sge sge{
      .addr = reinterpret_cast<uintptr_t>(local.at), .length = local.length, .lkey = local.key};
  ibv_send_wr wr{.wr_id = Completions::work_id(member_, static_cast<uint8_t>(work), 0),
                 .sg_list = &sge,
                 .num_sge = 1};
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED | flags;
  wr.wr.rdma = {.remote_addr = remote.to, .rkey = remote.stag};
  ibv_send_wr* bad = nullptr;
  if (!exists() || ibv_post_send(id_->qp, &wr, &bad) != 0) {
    down_ = true;
    return false;
  }
  ++posted_;
  return true;
}

// Behind the end of a connection all that is left in the queues completes with an error.
void QueuePair::completed(Work work, bool ok) {
  if (work != Work::receive && work != Work::broken) --posted_;
  if (work == Work::write) --writes_;
  if (!ok) down_ = true;
}

}  // namespace weft::sdp
