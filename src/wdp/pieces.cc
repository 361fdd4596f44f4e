#include "wdp/pieces.h"

#include <algorithm>
#include <cstring>

namespace weft::wdp {

using rdmap::Access;
using rdmap::LocalSegment;
using rdmap::MemoryFault;

Result<Ok, MemoryFault> local_pieces(rdmap::Memory& memory, const rdmap::SendWqe& wqe,
                                     uint32_t offset, uint32_t length, Access need,
                                     PieceList& out) {
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

Result<Ok, MemoryFault> receive_pieces(rdmap::Memory& memory, const rdmap::Receive& receive,
                                       uint64_t offset, size_t length, PieceList& out) {
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

void place(Bytes bytes, const PieceList& places) {
  const std::byte* from = bytes.data();
  for (const IoVec& v : places.pieces()) {
    std::memcpy(v.iov_base, from, v.iov_len);
    from += v.iov_len;
  }
}

}  // namespace weft::wdp
