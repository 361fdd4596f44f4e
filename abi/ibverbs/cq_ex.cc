// Completion queues that are read field by field: ibv_start_poll, ibv_wc_read_..., ibv_end_poll.
#include "abi/ibverbs/completion.h"
#include "abi/ibverbs/cq.h"
#include "abi/ibverbs/errors.h"

namespace weft::abi {
namespace {

constexpr uint64_t kTimestamps =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr uint64_t kFields = uint64_t{IBV_WC_STANDARD_FLAGS} | kTimestamps;

int show(AbiCq& q, size_t found) {
  if (found == 0) return ENOENT;
  q.wr_id = q.current.wr_id;
  q.status = to_status(q.current.status);
  return 0;
}

// The queue is the caller's from here to end_poll.
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  AbiCq& q = object(cq);
  if (!object(cq->context).alive()) return refuse_dead();
  if (attr != nullptr && attr->comp_mask != 0) return EINVAL;
  if (!q.single_threaded) q.polling.lock();
  const int error = show(q, q.core.poll({&q.current, 1}, verbs::CompletionQueue::Poll::part));
  if (error != 0 && !q.single_threaded) q.polling.unlock();
  return error;
}

int next_poll(ibv_cq_ex* cq) {
  AbiCq& q = object(cq);
  return show(q, q.core.pop({&q.current, 1}, verbs::CompletionQueue::Poll::part));
}

void end_poll(ibv_cq_ex* cq) {
  AbiCq& q = object(cq);
  if (q.core.channel() != nullptr) q.core.announce_held_back();
  if (!q.single_threaded) q.polling.unlock();
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) {
  return static_cast<ibv_wc_opcode>(object(cq).current.opcode);
}
uint32_t read_vendor_err(ibv_cq_ex* cq) {
  return object(cq).current.source_port;
}
uint32_t read_byte_len(ibv_cq_ex* cq) {
  return object(cq).current.byte_len;
}
__be32 read_imm_data(ibv_cq_ex* cq) {
  return immediate_or_rkey(object(cq).current);
}
uint32_t read_qp_num(ibv_cq_ex* cq) {
  return object(cq).current.qpn.value();
}
uint32_t read_src_qp(ibv_cq_ex* cq) {
  return object(cq).current.source_qpn.value();
}
unsigned read_wc_flags(ibv_cq_ex* cq) {
  return object(cq).current.flags;
}
uint32_t read_slid(ibv_cq_ex* cq) {
  return object(cq).current.source_lid;
}
uint8_t read_sl(ibv_cq_ex*) {
  return 0;
}
uint8_t read_dlid_path_bits(ibv_cq_ex*) {
  return 0;
}
// Both clocks of weft are the host's, in nanoseconds (query_device_ex: hca_core_clock).
uint64_t read_timestamp(ibv_cq_ex* cq) {
  return static_cast<uint64_t>(object(cq).current.timestamp);
}

void set_readers(AbiCq& q, uint64_t fields) {
  q.start_poll = start_poll;
  q.next_poll = next_poll;
  q.end_poll = end_poll;
  q.read_opcode = read_opcode;
  q.read_vendor_err = read_vendor_err;
  q.read_wc_flags = read_wc_flags;
  q.read_byte_len = read_byte_len;
  q.read_imm_data = read_imm_data;
  q.read_qp_num = read_qp_num;
  q.read_src_qp = read_src_qp;
  q.read_slid = read_slid;
  q.read_sl = read_sl;
  q.read_dlid_path_bits = read_dlid_path_bits;
  if ((fields & kTimestamps) != 0) {
    q.read_completion_ts = read_timestamp;
    q.read_completion_wallclock_ns = read_timestamp;
  }
}

}  // namespace

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  if (const uint64_t unknown = attr->wc_flags & ~kFields; unknown != 0) {
    return refuse_object(EOPNOTSUPP, "completion queue: completions have no wc_flags 0x%lx",
                         static_cast<unsigned long>(unknown));
  }
  if ((attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) != 0) {
    return refuse_object(EINVAL, "completion queue: comp_mask 0x%x has unknown options",
                         attr->comp_mask);
  }
  // The domain says who uses the queue, and nothing here follows from that.
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 &&
      (attr->parent_domain == nullptr || attr->parent_domain->context != context ||
       !object(attr->parent_domain).is_parent())) {
    return refuse_object(EINVAL, "completion queue: parent_domain is none of this ibv_context's");
  }
  bool single_threaded = false;
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0) {
    if ((attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0) {
      return refuse_object(EOPNOTSUPP, "completion queue: flags 0x%x are not supported",
                           attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
    }
    single_threaded = (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  }
  AbiCq* q = create_cq(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector,
                       (attr->wc_flags & kTimestamps) != 0);
  if (q == nullptr) return nullptr;
  q->single_threaded = single_threaded;
  set_readers(*q, attr->wc_flags);
  return q;
}

}  // namespace weft::abi
