#include "wdp/read_responder.h"

#include <algorithm>

#include "work/faults.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpData;
using wire::WdpDrop;
using wire::WdpReadRange;
using work::Access;

bool ReadResponder::known(const Known& k) const {
  const size_t n = std::min(remembered_, last_.size());
  return std::find(last_.begin(), last_.begin() + static_cast<ptrdiff_t>(n), k) !=
         last_.begin() + static_cast<ptrdiff_t>(n);
}

Result<Ok, WdpDrop> ReadResponder::received(const WdpData& d, Bytes payload) {
  if (!parameters_.reads || parameters_.ird == 0) return fail(WdpDrop::not_negotiated);
  const auto range = WdpReadRange::parse(payload.data());
  // "ignore an exact (RID, attempt, MO) seen in the last 64": stops replays (part IV).
  const Known k{d.read_id(), range.attempt, d.mo};
  if (known(k)) return fail(WdpDrop::repeated_read);
  if (answers_.full()) return fail(WdpDrop::too_many_reads);
  // "total bytes queued per session <= IRD * 1 MiB, else drop"
  if (queued_ + range.length > uint64_t{parameters_.ird} * WdpReadRange::kMaxUcRange) {
    return fail(WdpDrop::read_queue_full);
  }
  if (d.mlen > 0) {
    const auto p = consumer_.memory().remote(d.stag, d.to, d.mlen, Access::remote_read);
    if (!p.ok()) {
      errors_.report(work::read_fault(p.error()), d);
      return fail(WdpDrop::protection);
    }
  }
  const uint16_t own = parameters_.stride();
  const uint16_t stride =
      d.stride >= std::min(kLeastStride, own) && d.stride <= own ? d.stride : own;
  if (stride == 0) return fail(WdpDrop::bad_stride);
  last_[remembered_++ % last_.size()] = k;
  // "Responder rounds the range outward to its STRIDE"
  const uint32_t begin = d.mo.value() / stride * stride;
  const uint64_t end = (uint64_t{d.mo.value()} + range.length + stride - 1) / stride * stride;
  Answer& a = answers_.push_back({.request = d,
                                  .stride = stride,
                                  .asked = range.length,
                                  .next = begin,
                                  .end = static_cast<uint32_t>(std::min<uint64_t>(end, d.mlen))});
  queued_ += a.asked;
  return Ok{};
}

void ReadResponder::fill(Train& train) {
  while (!answers_.empty()) {
    Answer& a = answers_.front();
    if (!writer_.fits(train, std::min<uint32_t>(a.stride, a.request.mlen - a.next))) return;
    const Msn msn = writer_.aside();
    while (!a.done) {
      if (!write_segment(a, msn, train)) return;
    }
    queued_ -= a.asked;
    ++counters_.reads_answered;
    answers_.pop_front();
  }
}

// False when the train has no room for it.
bool ReadResponder::write_segment(Answer& a, Msn msn, Train& train) {
  const WdpData& r = a.request;
  const uint32_t n = std::min<uint32_t>(a.stride, r.mlen - a.next);
  if (!writer_.fits(train, n)) return false;
  PieceList pieces;
  if (n > 0) {
    // Looked up again: the region may have been deregistered since the request came.
    const auto p = consumer_.memory().remote(r.stag, r.to + a.next, n, Access::remote_read);
    if (!p.ok()) {
      errors_.report(work::read_fault(p.error()), r);
      a.done = true;
      return true;
    }
    pieces.add(*p, n);
  }
  const WdpData d{.msn = msn,
                  .mo = MessageOffset{a.next},
                  .mlen = r.mlen,
                  .last = a.next + n == r.mlen,
                  .opcode = Opcode::read_response,
                  .stride = a.stride,
                  .imm_or_read = r.imm_or_read,
                  .to = TaggedOffset{a.next}};
  if (!writer_.write(train, d, pieces.pieces())) {
    errors_.report(work::read_fault(work::MemoryFault::gone), r);
    a.done = true;
    return true;
  }
  in_train_ = r;
  a.next += n;
  a.done = a.next >= a.end;
  return true;
}

void ReadResponder::own_memory_lost() {
  if (!in_train_) return;
  errors_.report(work::read_fault(work::MemoryFault::gone), *in_train_);
  if (!answers_.empty() && answers_.front().request.imm_or_read == in_train_->imm_or_read) {
    queued_ -= answers_.front().asked;
    answers_.pop_front();
  }
  in_train_.reset();
}

}  // namespace weft::wdp
