#include "work/atomic.h"

#include "base/guarded.h"
#include "work/work_request.h"

namespace weft::work {

using Kind = AtomicFault::Kind;

Result<uint64_t, AtomicFault> execute_atomic(Memory& memory, const wire::AtomicRequest& request) {
  const bool add = request.code == wire::AtomicRequest::Code::fetch_add;
  if (!add && request.code != wire::AtomicRequest::Code::compare_swap) {
    return fail(AtomicFault{.kind = Kind::code});
  }
  const auto p = memory.remote(request.stag, request.to, kAtomicBytes, Access::remote_atomic);
  if (!p.ok()) return fail(AtomicFault{.kind = Kind::memory, .memory = p.error()});
  // RFC 7306 section 8.2: it is the address that counts, not the offset; a zero-based region may
  // start anywhere.
  if (reinterpret_cast<uintptr_t>(*p) % kAtomicBytes != 0) {
    return fail(AtomicFault{.kind = Kind::misaligned});
  }
  const auto changed = [&](uint64_t old) {
    if (!add) {
      return ((old ^ request.compare) & request.compare_mask) != 0
                 ? old
                 : (old & ~request.add_swap_mask) | (request.add_swap & request.add_swap_mask);
    }
    if (request.add_swap_mask == 0) return old + request.add_swap;
    // Each 1 of the mask is the top bit of a field; no carry leaves it.
    const uint64_t tops = request.add_swap_mask;
    return ((old & ~tops) + (request.add_swap & ~tops)) ^ ((old ^ request.add_swap) & tops);
  };
  // The first value is a guess.
  auto* target = reinterpret_cast<uint64_t*>(*p);
  uint64_t old = 0;
  Exchange outcome = Exchange::other_value;
  while (outcome == Exchange::other_value) {
    outcome = compare_exchange_guarded(target, old, changed(old));
  }
  if (outcome == Exchange::unreachable) {
    return fail(AtomicFault{.kind = Kind::memory, .memory = MemoryFault::gone});
  }
  return old;
}

}  // namespace weft::work
