#include "rdmap/pieces.h"

#include <algorithm>

namespace weft::rdmap {

Result<Ok, MemoryFault> local_pieces(Memory& memory, const SendWqe& wqe, uint32_t offset,
                                     uint32_t length, Access need, PieceList& out) {
  if (wqe.inlined) {
    out.add(const_cast<std::byte*>(wqe.payload()) + offset, length);
    return Ok{};
  }
  for (uint32_t i = 0; i < wqe.segments && length > 0; ++i) {
    const LocalSegment& s = wqe.segment()[i];
    if (offset >= s.length) {
      offset -= s.length;
      continue;
    }
    const uint32_t n = std::min(length, s.length - offset);
    const auto p = memory.local(s.lkey, s.address + offset, n, need);
    if (!p.ok()) return fail(p.error());
    out.add(*p, n);
    offset = 0;
    length -= n;
  }
  if (length > 0) return fail(MemoryFault::bounds);
  return Ok{};
}

Result<Ok, MemoryFault> receive_pieces(Memory& memory, const Receive& receive, uint64_t offset,
                                       size_t length, PieceList& out) {
  for (uint32_t i = 0; i < receive.segments && length > 0; ++i) {
    const LocalSegment& s = receive.segment[i];
    if (offset >= s.length) {
      offset -= s.length;
      continue;
    }
    const uint64_t n = std::min<uint64_t>(length, s.length - offset);
    const auto p = memory.receive_buffer(s.lkey, s.address + offset, n);
    if (!p.ok()) return fail(p.error());
    out.add(*p, n);
    offset = 0;
    length -= n;
  }
  if (length > 0) return fail(MemoryFault::bounds);
  return Ok{};
}

}  // namespace weft::rdmap
