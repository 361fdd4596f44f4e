// The other way of posting: ibv_wr_start, one call for the operation and one for its data,
// ibv_wr_complete.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/mw.h"
#include "abi/ibverbs/post_refusal.h"
#include "abi/ibverbs/qp.h"
#include "abi/ibverbs/receive.h"
#include "device/device.h"

namespace weft::abi {
namespace {

using work::Operation;

constexpr struct {
  Operation operation;
  uint64_t bit;
} kOperations[] = {
    {Operation::write, IBV_QP_EX_WITH_RDMA_WRITE},
    {Operation::write_immediate, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM},
    {Operation::send, IBV_QP_EX_WITH_SEND},
    {Operation::send_immediate, IBV_QP_EX_WITH_SEND_WITH_IMM},
    {Operation::send_invalidate, IBV_QP_EX_WITH_SEND_WITH_INV},
    {Operation::read, IBV_QP_EX_WITH_RDMA_READ},
    {Operation::compare_swap, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
    {Operation::fetch_add, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD},
    {Operation::local_invalidate, IBV_QP_EX_WITH_LOCAL_INV},
    {Operation::bind_window, IBV_QP_EX_WITH_BIND_MW},
};

void note(WrBuilder& b, int error) {
  if (b.error == 0) b.error = error;
}
void note(WrBuilder& b, const verbs::PostFault& fault) {
  if (b.error == 0) b.fault = fault;
  note(b, EINVAL);
}
// What the queue pair says of a request.
void note(WrBuilder& b, const verbs::Outcome<Ok>& outcome) {
  if (outcome.ok()) return;
  if (b.error == 0) b.fault = b.posting->fault();
  note(b, to_errno(outcome.error()));
}

bool signaled(const AbiQp& qp) {
  return (qp.wr_flags & IBV_SEND_SIGNALED) != 0;
}
bool fenced(const AbiQp& qp) {
  return (qp.wr_flags & IBV_SEND_FENCE) != 0;
}

// --- a request: begun by its operation, ended by its data, or without any by what comes next

// Is there a list that takes more?
bool started(WrBuilder& b) {
  if (!b.posting) note(b, EINVAL);
  return b.error == 0;
}

void finish(AbiQp& qp) {
  WrBuilder& b = *qp.builder;
  if (!std::exchange(b.open, false) || !started(b)) return;
  note(b, b.posting->add(b.request));
}

verbs::SendRequest& begin(ibv_qp_ex* base, Operation operation) {
  AbiQp& qp = object(base);
  finish(qp);
  qp.builder->open = true;
  qp.builder->has_data = false;
  qp.builder->request = {.wr_id = qp.wr_id,
                         .operation = operation,
                         .signaled = signaled(qp),
                         .fence = fenced(qp),
                         .solicited = (qp.wr_flags & IBV_SEND_SOLICITED) != 0};
  return qp.builder->request;
}

verbs::SendRequest& begin(ibv_qp_ex* base, Operation operation, uint32_t rkey, uint64_t address) {
  verbs::SendRequest& r = begin(base, operation);
  r.remote_stag = Stag{rkey};
  r.remote_to = TaggedOffset{address};
  return r;
}

// The address of a datagram is still to come, and what is lent for the call is kept.
void keep_data(WrBuilder& b) {
  verbs::SendRequest& r = b.request;
  std::copy_n(r.segments, r.count, b.segments.begin());
  r.segments = b.segments.data();
  if (!r.inlined) return;
  verbs::LocalSegment& data = b.segments.front();
  std::memcpy(b.inlined.data(), reinterpret_cast<const void*>(data.address), data.length);
  data.address = reinterpret_cast<uintptr_t>(b.inlined.data());
}

// Data without an operation is an error of the program.
void give_data(AbiQp& qp, const verbs::LocalSegment* segments, size_t count, bool inlined) {
  WrBuilder& b = *qp.builder;
  if (!b.open) return note(b, EINVAL);
  if (count > device::kMaxSge) {
    b.open = false;
    return note(b, {.rule = verbs::PostFault::Rule::segments,
                    .asked = count,
                    .limit = qp.core->limits().max_send_sge});
  }
  b.request.segments = segments;
  b.request.count = static_cast<uint32_t>(count);
  b.request.inlined = inlined;
  if (!qp.core->traits().addressed || b.request.handle != nullptr) return finish(qp);
  b.has_data = true;
  keep_data(b);
}

// --- operations

void wr_send(ibv_qp_ex* qp) {
  begin(qp, Operation::send);
}
void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
  begin(qp, Operation::send_immediate).immediate = ntohl(immediate);
}
void wr_send_inv(ibv_qp_ex* qp, uint32_t rkey) {
  begin(qp, Operation::send_invalidate).remote_stag = Stag{rkey};
}
void wr_rdma_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
  begin(qp, Operation::write, rkey, address);
}
void wr_rdma_write_imm(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, __be32 immediate) {
  begin(qp, Operation::write_immediate, rkey, address).immediate = ntohl(immediate);
}
void wr_rdma_read(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
  begin(qp, Operation::read, rkey, address);
}
void wr_atomic_cmp_swp(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t compare,
                       uint64_t swap) {
  verbs::SendRequest& r = begin(qp, Operation::compare_swap, rkey, address);
  r.compare_add = compare;
  r.swap = swap;
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t add) {
  begin(qp, Operation::fetch_add, rkey, address).compare_add = add;
}

void wr_local_inv(ibv_qp_ex* base, uint32_t rkey) {
  AbiQp& qp = object(base);
  finish(qp);
  WrBuilder& b = *qp.builder;
  if (!started(b)) return;
  note(b, b.posting->add_local_invalidate(Stag{rkey}, qp.wr_id, signaled(qp), fenced(qp)));
}

bool remember_key(WrBuilder& b, ibv_mw& mw) try {
  b.bound.push_back({&mw, mw.rkey});
  return true;
} catch (const std::bad_alloc&) {
  note(b, ENOMEM);
  return false;
}

void put_keys_back(WrBuilder& b) {
  for (; !b.bound.empty(); b.bound.pop_back()) b.bound.back().window->rkey = b.bound.back().rkey;
}

void wr_bind_mw(ibv_qp_ex* base, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  AbiQp& qp = object(base);
  finish(qp);
  WrBuilder& b = *qp.builder;
  if (!started(b)) return;
  verbs::BindRequest request;
  if (const int e = make_type_2_bind(*mw, rkey, *info, request); e != 0) return note(b, e);
  if (!remember_key(b, *mw)) return;
  const auto added = b.posting->add_bind(request, qp.wr_id, signaled(qp), fenced(qp));
  if (added.ok()) mw->rkey = request.fresh_stag.value();
  note(b, added);
}

// What no queue pair has. Programs that ask for it at creation are refused there.
void unsupported(ibv_qp_ex* qp) {
  note(*object(qp).builder, EOPNOTSUPP);
}
void wr_send_tso(ibv_qp_ex* qp, void*, uint16_t, uint16_t) {
  unsupported(qp);
}
void wr_atomic_write(ibv_qp_ex* qp, uint32_t, uint64_t, const void*) {
  unsupported(qp);
}
void wr_set_ud_addr(ibv_qp_ex* base, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  AbiQp& qp = object(base);
  WrBuilder& b = *qp.builder;
  if (!qp.core->traits().addressed) return unsupported(base);
  if (!b.open || ah == nullptr) {
    b.open = false;
    return note(b, EINVAL);
  }
  b.request.handle = &object(ah).core;
  b.request.remote_qpn = Qpn{remote_qpn & 0xffffff};
  b.request.remote_q_key = QKey{remote_qkey};
  if (b.has_data) finish(qp);
}
void wr_set_xrc_srqn(ibv_qp_ex* qp, uint32_t) {
  unsupported(qp);
}

// --- data

void wr_set_sge(ibv_qp_ex* qp, uint32_t lkey, uint64_t address, uint32_t length) {
  const verbs::LocalSegment segment{.address = address, .length = length, .lkey = Stag{lkey}};
  give_data(object(qp), &segment, 1, false);
}

void wr_set_sge_list(ibv_qp_ex* qp, size_t count, const ibv_sge* list) {
  give_data(object(qp), as_segments(list), count, false);
}

void inline_too_long(AbiQp& qp, size_t length) {
  qp.builder->open = false;
  note(*qp.builder, {.rule = verbs::PostFault::Rule::inline_length,
                     .asked = length,
                     .limit = qp.core->limits().max_inline});
}

void wr_set_inline_data_list(ibv_qp_ex* base, size_t count, const ibv_data_buf* list) {
  AbiQp& qp = object(base);
  std::array<std::byte, device::kMaxInline> gathered;
  size_t length = 0;
  for (size_t i = 0; i < count; ++i) {
    if (list[i].length > gathered.size() - length)
      return inline_too_long(qp, length + list[i].length);
    if (list[i].length > 0) std::memcpy(&gathered[length], list[i].addr, list[i].length);
    length += list[i].length;
  }
  const verbs::LocalSegment segment{.address = reinterpret_cast<uintptr_t>(gathered.data()),
                                    .length = static_cast<uint32_t>(length)};
  give_data(qp, &segment, 1, true);
}

void wr_set_inline_data(ibv_qp_ex* base, void* address, size_t length) {
  AbiQp& qp = object(base);
  if (length > device::kMaxInline) return inline_too_long(qp, length);
  const verbs::LocalSegment segment{.address = reinterpret_cast<uintptr_t>(address),
                                    .length = static_cast<uint32_t>(length)};
  give_data(qp, &segment, 1, true);
}

// --- the list: the builder is one thread's from start to complete or abort

void wr_start(ibv_qp_ex* base) {
  AbiQp& qp = object(base);
  WrBuilder& b = *qp.builder;
  if (!object(base->qp_base.context).alive()) {
    b.error = refuse_dead();
    return;
  }
  b.lock.lock();
  b.posting.emplace(*qp.core);
  b.open = false;
  b.error = 0;
  b.fault = {};
}

int wr_complete(ibv_qp_ex* base) {
  AbiQp& qp = object(base);
  WrBuilder& b = *qp.builder;
  finish(qp);
  const int error = std::exchange(b.error, 0);
  if (!b.posting) return refuse(error == 0 ? EINVAL : error);
  const bool due = error == 0 && b.posting->publish();
  if (error != 0) put_keys_back(b);
  b.bound.clear();
  b.posting.reset();
  const verbs::PostFault fault = b.fault;  // another thread's list may begin
  b.lock.unlock();
  // Not under the lock: this may send, and nobody is to wait for that.
  if (due) qp.core->ring();
  if (error == 0) return 0;
  const bool said = fault.rule == verbs::PostFault::Rule::none;
  return said ? refuse(error) : refuse_send(qp.qp_base, fault);
}

void wr_abort(ibv_qp_ex* base) {
  WrBuilder& b = *object(base).builder;
  b.open = false;
  b.error = 0;
  if (!b.posting) return;
  put_keys_back(b);
  b.posting.reset();
  b.lock.unlock();
}

}  // namespace

uint64_t builder_operations(ibv_qp_type type) {
  const verbs::QpTypeTraits* traits = verbs::find_type(type);
  uint64_t all = 0;
  for (const auto& o : kOperations) {
    if (traits != nullptr && traits->has(o.operation)) all |= o.bit;
  }
  return all;
}

void set_builder(AbiQp& qp, std::unique_ptr<WrBuilder> builder) {
  qp.builder = std::move(builder);
  qp.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  qp.wr_atomic_fetch_add = wr_atomic_fetch_add;
  qp.wr_bind_mw = wr_bind_mw;
  qp.wr_local_inv = wr_local_inv;
  qp.wr_rdma_read = wr_rdma_read;
  qp.wr_rdma_write = wr_rdma_write;
  qp.wr_rdma_write_imm = wr_rdma_write_imm;
  qp.wr_send = wr_send;
  qp.wr_send_imm = wr_send_imm;
  qp.wr_send_inv = wr_send_inv;
  qp.wr_send_tso = wr_send_tso;
  qp.wr_set_ud_addr = wr_set_ud_addr;
  qp.wr_set_xrc_srqn = wr_set_xrc_srqn;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
  qp.wr_abort = wr_abort;
  qp.wr_atomic_write = wr_atomic_write;
}

}  // namespace weft::abi
