#include "ddp/segment_receiver.h"

namespace weft::ddp {

using wire::Refusal;

Verdict SegmentReceiver::begin(Bytes start, size_t ulpdu) {
  valid_ = false;
  // A ULPDU that has not even its DDP header: MPA's length was wrong.
  if (start.size() < header_size(start[0]))
    return fail(wire::term::kMpaLength.because(Refusal::header_cut));
  segment_.read(start, ulpdu);
  const wire::Control& c = segment_.control;
  // RFC 5041 sections 4.1 and 7.2: DDP version 1 only.
  if (c.ddp_version != wire::kDdpVersion) {
    return fail((c.tagged ? wire::term::kTaggedVersion : wire::term::kUntaggedVersion)
                    .because(Refusal::ddp_version));
  }
  if (c.rdmap_version != wire::kRdmapVersion) {
    return fail(wire::term::kOperationVersion.because(Refusal::rdmap_version));
  }
  valid_ = true;
  if (Verdict v = ulp_.check(segment_); !v.ok()) return v;
  if (ulpdu < wire::min_ulpdu(c.opcode)) {
    return fail(wire::term::kMpaLength.because(Refusal::ulpdu_too_short));
  }
  if (!c.tagged) {
    if (segment_.qn.value() >= queues_.size()) {
      return fail(wire::term::kUntaggedInvalidQn.because(Refusal::queue_number));
    }
    if (Verdict v = queues_[segment_.qn.value()].check(segment_); !v.ok()) return v;
  }
  return ulp_.open(segment_);
}

Verdict SegmentReceiver::deliver() {
  if (!segment_.control.tagged) queues_[segment_.qn.value()].advance(segment_);
  return ulp_.deliver(segment_);
}

}  // namespace weft::ddp
