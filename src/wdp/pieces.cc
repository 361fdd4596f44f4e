#include "wdp/pieces.h"

#include <algorithm>

#include "base/guarded.h"

namespace weft::wdp {

bool place(Bytes bytes, const PieceList& places) {
  return place(bytes, {}, places);
}

bool place(Bytes first, Bytes rest, const PieceList& places) {
  for (const IoVec& v : places.pieces()) {
    auto* to = static_cast<std::byte*>(v.iov_base);
    const size_t n = std::min(v.iov_len, first.size());
    const size_t more = v.iov_len - n;
    if (!copy_guarded(to, first.data(), n) || !copy_guarded(to + n, rest.data(), more)) {
      return false;
    }
    first = first.subspan(n);
    rest = rest.subspan(more);
  }
  return true;
}

namespace {

bool is_there(work::Memory& memory, const work::SendWqe& w) {
  PieceList pieces;
  if (!local_pieces(memory, w, 0, w.length, work::Access::local_read, pieces).ok()) return false;
  const auto all = pieces.pieces();
  return std::all_of(all.begin(), all.end(),
                     [](const IoVec& v) { return readable_guarded(v.iov_base, v.iov_len); });
}

}  // namespace

uint64_t first_without_memory(work::Memory& memory, work::SendQueue& queue, uint64_t first,
                              uint64_t end) {
  uint64_t oldest = end;
  for (uint64_t at = first; at < end; ++at) {
    const work::SendWqe& w = queue.at(at);
    if (!work::is_send(w.operation) && !work::is_write(w.operation)) continue;
    if (!is_there(memory, w)) return at;
    oldest = std::min(oldest, at);
  }
  return oldest;
}

}  // namespace weft::wdp
