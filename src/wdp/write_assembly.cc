#include "wdp/write_assembly.h"

namespace weft::wdp {

using wire::WdpData;
using wire::WdpDrop;

namespace {

TaggedOffset base_of(const WdpData& d) {
  return TaggedOffset{d.to.value() - d.mo.value()};
}

bool agrees(const WdpData& a, const WdpData& first) {
  return a.opcode == first.opcode && a.mlen == first.mlen && a.stride == first.stride &&
         a.stag == first.stag && a.imm_or_read == first.imm_or_read &&
         a.write_se == first.write_se && base_of(a) == first.to;
}

}  // namespace

void WriteAssembly::give_up(Context& c) {
  c.open = false;
  --open_;
  ++counters_.messages_incomplete;
}

Result<WriteAssembly::Context*, WdpDrop> WriteAssembly::of_message(Context& c, const WdpData& d) {
  if (!agrees(d, c.header)) return fail(WdpDrop::context_mismatch);
  // Another PSN, or the window would have stopped it.
  if (c.came.test(d.segment_index())) return fail(WdpDrop::duplicate_segment);
  latest_ = static_cast<size_t>(&c - contexts_.data());
  return &c;
}

Result<WriteAssembly::Context*, WdpDrop> WriteAssembly::find(const WdpData& d,
                                                             MsnWindow& messages) {
  if (messages.closed(d.msn)) return fail(WdpDrop::superseded);
  Context& latest = contexts_[latest_];
  if (latest.open && latest.header.msn == d.msn) return of_message(latest, d);
  Context* unused = nullptr;
  Context* oldest = &contexts_.front();  // counts only where all are open
  for (Context& c : contexts_) {
    if (!c.open) {
      unused = &c;
    } else if (c.header.msn == d.msn) {
      return of_message(c, d);
    } else if (distance(oldest->header.msn, c.header.msn) < 0) {
      oldest = &c;
    }
  }
  if (d.segment_count() > kMostSegmentsOfMessage) {
    messages.close(d.msn);
    return fail(WdpDrop::too_many_segments);
  }
  if (unused == nullptr) {
    // The newcomer itself may be the oldest.
    if (distance(oldest->header.msn, d.msn) < 0) {
      messages.close(d.msn);
      ++counters_.messages_incomplete;
      return fail(WdpDrop::superseded);
    }
    messages.close(oldest->header.msn);
    give_up(*oldest);
    unused = oldest;
  }
  unused->open = true;
  unused->header = d;
  unused->header.to = base_of(d);
  unused->last = d.psn;
  unused->came.reset(d.segment_count());
  ++open_;
  latest_ = static_cast<size_t>(unused - contexts_.data());
  return unused;
}

bool WriteAssembly::takes(const WdpData& d, const MsnWindow& messages) const {
  if (messages.closed(d.msn)) return false;
  if (d.segment_count() == 1) return true;
  for (const Context& c : contexts_) {
    if (c.open && c.header.msn == d.msn) {
      return agrees(d, c.header) && !c.came.test(d.segment_index());
    }
  }
  return open_ < contexts_.size() && d.segment_count() <= kMostSegmentsOfMessage;
}

bool WriteAssembly::placed(Context& c, const WdpData& d, MsnWindow& messages) {
  c.came.set(d.segment_index());
  if (distance(c.last, d.psn) > 0) c.last = d.psn;
  if (!c.came.full()) return false;
  c.open = false;
  --open_;
  messages.close(d.msn);
  return true;
}

void WriteAssembly::forget_stale(const MsnWindow& messages) {
  if (open_ == 0) return;
  for (Context& c : contexts_) {
    if (c.open && distance(messages.highest(), c.header.msn) <= -kMsnWindow) give_up(c);
  }
}

void WriteAssembly::restart() {
  for (Context& c : contexts_) {
    if (c.open) give_up(c);
  }
}

void WriteAssembly::trim() {
  for (Context& c : contexts_) {
    if (!c.open) c.came.release();
  }
}

}  // namespace weft::wdp
