#include "verbs/memory_access.h"

#include <cstring>

#include "verbs/null_memory.h"
#include "verbs/queue_pair.h"
#include "verbs/send_request.h"

namespace weft::verbs {

MemoryAccess::MemoryAccess(const QueuePair& qp) : qp_(qp), table_(qp.adapter().memory()) {}

Result<std::byte*, work::MemoryFault> MemoryAccess::local(Stag lkey, uint64_t address,
                                                          uint64_t length, work::Access need) {
  return local_in(qp_.pd(), lkey, address, length, static_cast<uint32_t>(need));
}

// InfiniBand 10.2.9.4: the receives of a shared queue are in its domain.
Result<std::byte*, work::MemoryFault> MemoryAccess::receive_buffer(Stag lkey, uint64_t address,
                                                                   uint64_t length) {
  return local_in(qp_.srq() != nullptr ? qp_.srq()->pd() : qp_.pd(), lkey, address, length,
                  access::kLocalWrite);
}

Result<std::byte*, work::MemoryFault> MemoryAccess::local_in(const ProtectionDomain& pd, Stag lkey,
                                                             uint64_t address, uint64_t length,
                                                             uint32_t need) const {
  const Region* r = table_.find(lkey);
  if (r == nullptr || r->window) return fail(work::MemoryFault::invalid_stag);
  if (r->pd != &pd) return fail(work::MemoryFault::not_on_stream);
  if (NullMemory::is(r->base)) {
    // Any address is good.
    if (length > NullMemory::kSize) return fail(work::MemoryFault::bounds);
    return NullMemory::place((need & access::kLocalWrite) != 0);
  }
  return r->resolve(address, length, need);
}

Result<std::byte*, work::MemoryFault> MemoryAccess::remote(Stag stag, TaggedOffset to,
                                                           uint64_t length, work::Access need) {
  static constexpr auto flag = [](work::Access a) -> uint32_t {
    switch (a) {
      case work::Access::remote_write:
        return access::kRemoteWrite;
      case work::Access::remote_read:
        return access::kRemoteRead;
      case work::Access::remote_atomic:
        return access::kRemoteAtomic;
      case work::Access::local_write:
        return access::kLocalWrite;
      case work::Access::local_read:
        break;
    }
    return 0;
  };
  const Region* r = table_.find(stag);
  if (r == nullptr) return fail(work::MemoryFault::invalid_stag);
  if (r->pd != &qp_.pd() || (r->window_qp != Qpn{} && r->window_qp != qp_.number())) {
    return fail(work::MemoryFault::not_on_stream);
  }
  // The queue pair's own rights come before the region's.
  if ((qp_.attributes().access & flag(need)) == 0) return fail(work::MemoryFault::access);
  return r->resolve(to.value(), length, flag(need));
}

Result<Ok, work::MemoryFault> MemoryAccess::invalidate(Stag stag) {
  const Region* r = table_.find(stag);
  if (r == nullptr) return fail(work::MemoryFault::invalid_stag);
  if (r->pd != &qp_.pd() || (r->window_qp != Qpn{} && r->window_qp != qp_.number())) {
    return fail(work::MemoryFault::not_on_stream);
  }
  // Type 1 windows and regions are their owner's alone to take back (InfiniBand 10.6.2;
  // spec/rdmap 2.5).
  if (r->window_qp == Qpn{}) return fail(work::MemoryFault::cannot_invalidate);
  return close_window(stag);
}

Result<Ok, work::MemoryFault> MemoryAccess::close_window(Stag stag) {
  auto done = table_.invalidate(stag);
  if (done.ok()) qp_.transport().window_closed();
  return done;
}

Status MemoryAccess::execute(work::SendWqe& wqe) {
  if (wqe.operation == work::Operation::bind_window) {
    BindRequest b;
    std::memcpy(&b, wqe.payload(), sizeof b);
    return bind(b);
  }
  const Region* r = table_.find(wqe.remote_stag);
  if (r == nullptr || r->pd != &qp_.pd() || r->window_qp != qp_.number()) {
    return Status::window_bind;
  }
  return close_window(wqe.remote_stag).ok() ? Status::success : Status::window_bind;
}

Status MemoryAccess::bind(const BindRequest& b) {
  Region bounds;
  bounds.pd = &qp_.pd();
  if (b.length > 0) {
    Region* parent = table_.find(b.lkey);
    if (parent == nullptr || parent->window || parent->pd != &qp_.pd() ||
        (parent->access & access::kMwBind) == 0) {
      return Status::window_bind;
    }
    // A window that lets peers write needs a region that is writable here (InfiniBand 10.6.7.2.2).
    if ((b.access & (access::kRemoteWrite | access::kRemoteAtomic)) != 0 &&
        (parent->access & access::kLocalWrite) == 0) {
      return Status::window_bind;
    }
    const auto p = parent->resolve(b.address, b.length, 0);
    if (!p.ok()) return Status::window_bind;
    bounds.base = *p;
    bounds.iova = (b.access & access::kZeroBased) != 0 ? 0 : b.address;
    bounds.length = b.length;
    bounds.access = b.access;
    bounds.window_qp = b.type_2 ? qp_.number() : Qpn{};
    bounds.parent = parent;
  }
  if (b.length == 0 && b.type_2) return Status::window_bind;
  const auto was_bound = table_.bind_window(b.window, b.old_stag, b.fresh_stag, bounds);
  if (!was_bound.ok()) return Status::window_bind;
  if (*was_bound) qp_.transport().window_closed();
  return Status::success;
}

}  // namespace weft::verbs
