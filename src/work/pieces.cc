#include "work/pieces.h"

#include <algorithm>
#include <span>

namespace weft::work {
namespace {

// `find`: where so many bytes of a segment at an address live, or why the program may not.
template <class Find>
Result<Ok, MemoryFault> collect(std::span<const LocalSegment> segments, uint64_t offset,
                                uint64_t length, PieceList& out, Find&& find) {
  for (const LocalSegment& s : segments) {
    if (length == 0) return Ok{};
    if (offset >= s.length) {
      offset -= s.length;
      continue;
    }
    const uint64_t n = std::min(length, s.length - offset);
    const auto p = find(s.lkey, s.address + offset, n);
    if (!p.ok()) return fail(p.error());
    out.add(*p, n);
    offset = 0;
    length -= n;
  }
  if (length > 0) return fail(MemoryFault::bounds);
  return Ok{};
}

}  // namespace

Result<Ok, MemoryFault> local_pieces(Memory& memory, const SendWqe& wqe, uint32_t offset,
                                     uint32_t length, Access need, PieceList& out) {
  if (wqe.inlined) {
    out.add(const_cast<std::byte*>(wqe.payload()) + offset, length);
    return Ok{};
  }
  return collect({wqe.segment(), wqe.segments}, offset, length, out,
                 [&](Stag lkey, uint64_t address, uint64_t n) {
                   return memory.local(lkey, address, n, need);
                 });
}

Result<Ok, MemoryFault> receive_pieces(Memory& memory, const Receive& receive, uint64_t offset,
                                       size_t length, PieceList& out) {
  return collect(std::span{receive.segment}.first(receive.segments), offset, length, out,
                 [&](Stag lkey, uint64_t address, uint64_t n) {
                   return memory.receive_buffer(lkey, address, n);
                 });
}

}  // namespace weft::work
