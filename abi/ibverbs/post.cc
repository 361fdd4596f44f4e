// Posting: from the program's lists of work requests to the core's, one translation and no
// allocation.
#include <arpa/inet.h>

#include "abi/ibverbs/enums.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/mw.h"
#include "abi/ibverbs/post_refusal.h"
#include "abi/ibverbs/qp.h"
#include "abi/ibverbs/receive.h"

namespace weft::abi {
namespace {

using work::Operation;
using Posting = verbs::SendPosting;

bool has(const ibv_send_wr& wr, unsigned flag) {
  return (wr.send_flags & flag) != 0;
}

int from(const verbs::Outcome<Ok>& outcome) {
  return outcome.ok() ? 0 : to_errno(outcome.error());
}

int add_bind(Posting& posting, const ibv_send_wr& wr) {
  const auto& b = wr.bind_mw;
  verbs::BindRequest request;
  if (const int e = make_type_2_bind(*b.mw, b.rkey, b.bind_info, request); e != 0) return e;
  const auto added =
      posting.add_bind(request, wr.wr_id, has(wr, IBV_SEND_SIGNALED), has(wr, IBV_SEND_FENCE));
  if (added.ok()) b.mw->rkey = request.fresh_stag.value();
  return from(added);
}

int add_local_invalidate(Posting& posting, const ibv_send_wr& wr) {
  return from(posting.add_local_invalidate(Stag{wr.invalidate_rkey}, wr.wr_id,
                                           has(wr, IBV_SEND_SIGNALED), has(wr, IBV_SEND_FENCE)));
}

// The part that depends on the operation. False for those that no queue pair has.
bool set_operation(const ibv_send_wr& wr, int opcode, verbs::SendRequest& r) {
  switch (opcode) {
    case IBV_WR_SEND:
      r.operation = Operation::send;
      return true;
    case IBV_WR_SEND_WITH_IMM:
      r.operation = Operation::send_immediate;
      r.immediate = ntohl(wr.imm_data);
      return true;
    case IBV_WR_SEND_WITH_INV:
      r.operation = Operation::send_invalidate;
      r.remote_stag = Stag{wr.invalidate_rkey};
      return true;
    case IBV_WR_RDMA_WRITE:
      r.operation = Operation::write;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      r.operation = Operation::write_immediate;
      r.immediate = ntohl(wr.imm_data);
      break;
    case IBV_WR_RDMA_READ:
      r.operation = Operation::read;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      r.operation =
          opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? Operation::compare_swap : Operation::fetch_add;
      r.remote_to = TaggedOffset{wr.wr.atomic.remote_addr};
      r.remote_stag = Stag{wr.wr.atomic.rkey};
      r.compare_add = wr.wr.atomic.compare_add;
      r.swap = wr.wr.atomic.swap;
      return true;
    default:
      return false;
  }
  r.remote_to = TaggedOffset{wr.wr.rdma.remote_addr};
  r.remote_stag = Stag{wr.wr.rdma.rkey};
  return true;
}

int add(Posting& posting, const ibv_send_wr& wr, bool datagrams) {
  const int opcode = number_of(wr.opcode);
  if (opcode == IBV_WR_BIND_MW) return add_bind(posting, wr);
  if (opcode == IBV_WR_LOCAL_INV) return add_local_invalidate(posting, wr);
  verbs::SendRequest r{.wr_id = wr.wr_id,
                       .signaled = has(wr, IBV_SEND_SIGNALED),
                       .fence = has(wr, IBV_SEND_FENCE),
                       .solicited = has(wr, IBV_SEND_SOLICITED),
                       .inlined = has(wr, IBV_SEND_INLINE),
                       .segments = as_segments(wr.sg_list),
                       .count = static_cast<uint32_t>(wr.num_sge)};
  if (!set_operation(wr, opcode, r)) {
    return refuse(EINVAL, "send request: opcode %d; no queue pair has it", opcode);
  }
  if (datagrams) {
    // One request has no room for an address handle and a remote address.
    if (!work::is_send(r.operation)) {
      return refuse(EINVAL,
                    "send request: opcode %d with an address handle: ibv_wr_start() and the calls "
                    "that go with it have room for both",
                    opcode);
    }
    if (wr.wr.ud.ah == nullptr) return refuse(EINVAL, "send request: no address handle (wr.ud.ah)");
    r.handle = &object(wr.wr.ud.ah).core;
    r.remote_qpn = Qpn{wr.wr.ud.remote_qpn & 0xffffff};
    r.remote_q_key = QKey{wr.wr.ud.remote_qkey};
  }
  // A service of raw packets that the device does not claim.
  if (has(wr, IBV_SEND_IP_CSUM)) {
    return refuse(EINVAL, "send request: IBV_SEND_IP_CSUM is for raw packets");
  }
  return from(posting.add(r));
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  if (!object(qp->context).alive()) {
    *bad_wr = wr;
    return refuse_dead();
  }
  int error = 0;
  verbs::PostFault fault;
  {
    Posting posting{*object(qp).core};
    const bool datagrams = object(qp).core->traits().addressed;
    for (; wr != nullptr; wr = wr->next) {
      error = add(posting, *wr, datagrams);
      if (error != 0) break;
    }
    if (error != 0) fault = posting.fault();
    posting.commit();
  }
  if (error == 0) return 0;
  *bad_wr = wr;
  // Others have said why.
  return fault.rule == verbs::PostFault::Rule::none ? refuse(error) : refuse_send(*qp, fault);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  if (!object(qp->context).alive()) {
    *bad_wr = wr;
    return refuse_dead();
  }
  verbs::QueuePair& core = *object(qp).core;
  const int error = post_receives(
      wr, bad_wr, [&](const verbs::ReceiveRequest* requests, size_t count, size_t& posted) {
        return core.post_receive(requests, count, posted);
      });
  if (error != EINVAL) return error;
  return refuse_receive(*qp, core.receive_fault(static_cast<uint32_t>((*bad_wr)->num_sge)));
}

}  // namespace weft::abi
