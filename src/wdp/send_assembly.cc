#include "wdp/send_assembly.h"

#include <utility>

#include "wdp/pieces.h"

namespace weft::wdp {

using wire::WdpData;
using wire::WdpDrop;
using work::Arrival;
using work::Status;

bool SendAssembly::agrees(const WdpData& d) const {
  return d.opcode == header_.opcode && d.mlen == header_.mlen && d.stride == header_.stride &&
         d.stag == header_.stag && d.flags.immediate == header_.flags.immediate &&
         d.imm_or_read == header_.imm_or_read;
}

bool SendAssembly::waits_for(const WdpData& d) const {
  return is_open(d.msn) && agrees(d) && !came_.test(d.segment_index());
}

bool SendAssembly::next_receive() {
  if (has_receive_) return true;
  if (receive_.empty()) receive_.emplace_back();
  return has_receive_ = consumer_.take_receive(receive_.front());
}

void SendAssembly::give_up() {
  if (!std::exchange(open_, false)) return;
  refused_ = WdpDrop::superseded;
  ++counters_.messages_incomplete;
}

// spec/wdp-uc 3.7: First segment of a newer MSN opens it with the next WQE, or re-uses the WQE
// of the incomplete older message.
Result<Ok, WdpDrop> SendAssembly::begin(const WdpData& d) {
  give_up();
  known_ = true;
  header_ = d;
  if (d.segment_count() > kMostSegmentsOfMessage) {
    refused_ = WdpDrop::too_many_segments;
  } else if (!next_receive()) {
    ++counters_.messages_without_receive;
    refused_ = WdpDrop::no_receive;
  } else if (d.mlen > receive_.front().length) {
    // "drop the whole message (WQE kept for the next), counter; no error completion"
    ++counters_.messages_too_long;
    refused_ = WdpDrop::receive_too_small;
  } else {
    open_ = true;
    came_.reset(d.segment_count());
    return Ok{};
  }
  give_back_receive();
  return fail(refused_);
}

Result<Ok, WdpDrop> SendAssembly::open(const WdpData& d, PieceList& places) {
  const int32_t age = known_ ? distance(header_.msn, d.msn) : 1;
  if (age < 0) return fail(WdpDrop::superseded);
  if (age > 0) {
    if (const auto begun = begin(d); !begun) return fail(begun.error());
  } else {
    if (!open_) return fail(refused_);
    if (!agrees(d)) return fail(WdpDrop::context_mismatch);
    // Another PSN, or the window would have stopped it.
    if (came_.test(d.segment_index())) return fail(WdpDrop::duplicate_segment);
  }
  if (receive_pieces(consumer_.memory(), receive_.front(), d.mo.value(), d.payload_size(), places)
          .ok()) {
    return Ok{};
  }
  return fail(unreachable());
}

// Our own program's fault.
WdpDrop SendAssembly::unreachable() {
  open_ = has_receive_ = false;
  refused_ = WdpDrop::own_memory;
  ++counters_.messages_incomplete;
  consumer_.receive_done(receive_.front(), Status::local_protection, {});
  return refused_;
}

bool SendAssembly::placed(const WdpData& d) {
  came_.set(d.segment_index());
  return came_.full();
}

Result<Ok, work::MemoryFault> SendAssembly::deliver() {
  open_ = false;
  refused_ = WdpDrop::superseded;
  Arrival a{.solicited = header_.solicited(),
            .has_immediate = header_.has_immediate(),
            .invalidated = wire::invalidates(header_.opcode),
            .length = header_.mlen};
  if (a.has_immediate) a.immediate = header_.imm_or_read;
  if (a.invalidated) {
    // spec/wdp-uc 3.8; RFC 5040 section 5.3: the STag is invalid before the ULP learns of it.
    a.invalidated_stag = header_.stag;
    if (const auto done = consumer_.memory().invalidate(header_.stag); !done.ok()) {
      ++counters_.messages_incomplete;
      give_back_receive();
      return fail(done.error());
    }
  }
  ++counters_.messages_complete;
  has_receive_ = false;
  consumer_.receive_done(receive_.front(), Status::success, a);
  return Ok{};
}

bool SendAssembly::take_receive(work::Receive& out) {
  give_up();
  if (!has_receive_) return consumer_.take_receive(out);
  has_receive_ = false;
  out = receive_.front();
  return true;
}

void SendAssembly::restart() {
  give_back_receive();
  known_ = false;
}

// Others may take from the same queue: none is kept for a message that may never come.
void SendAssembly::give_back_receive() {
  give_up();
  if (std::exchange(has_receive_, false)) consumer_.give_back(std::exchange(receive_, {}));
}

}  // namespace weft::wdp
