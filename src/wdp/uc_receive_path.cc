#include "wdp/uc_receive_path.h"

#include <utility>

#include "wdp/pieces.h"
#include "wdp/read_requester.h"
#include "wdp/read_responder.h"
#include "work/faults.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpData;
using wire::WdpDrop;
using work::Access;

namespace {

bool needs_immediate(const WdpData& d) {
  return d.flags.immediate && (d.opcode == Opcode::write || wire::is_send(d.opcode));
}

}  // namespace

UcReceivePath::UcReceivePath(UcConsumer& consumer, const UcParameters& parameters,
                             ReadRequester& requester, ReadResponder& responder,
                             ErrorReporter& errors, UcCounters& counters)
    : consumer_(consumer),
      parameters_(parameters),
      requester_(requester),
      responder_(responder),
      errors_(errors),
      counters_(counters),
      psns_(parameters.peer_first_psn, parameters.is_static),
      resequencer_(parameters.peer_first_psn),
      sends_(consumer, counters),
      writes_(counters) {}

void UcReceivePath::received(const WdpData& d, Bytes payload, Time now) {
  if (const auto v = accept(d, {.payload = payload}, now); !v.ok())
    counters_.drops.count(v.error());
}

void UcReceivePath::direct_received(const WdpData& d, Time now) {
  if (const auto v = accept(d, {.in_place = true}, now); !v.ok()) counters_.drops.count(v.error());
}

void UcReceivePath::direct_unreachable(const WdpData& d) {
  Verdict v = Ok{};
  if (d.opcode == Opcode::write) {
    v = lose_target(d);
  } else if (d.opcode == Opcode::read_response) {
    v = requester_.unreachable(d);
  } else {
    v = fail(sends_.unreachable());
  }
  counters_.drops.count(v.error());
}

UcReceivePath::Verdict UcReceivePath::accept(const WdpData& d, const Source& source, Time now) {
  // Before placement: a late copy must never overwrite newer data (spec/wdp-uc 3.2).
  if (const auto v = psns_.check(d.psn); !v) return fail(v.error());
  if (psns_.took_jump()) begin_anew();
  const bool newest = !psns_.started() || distance(psns_.highest(), d.psn) > 0;
  const auto message = messages_.check(d.msn, newest);
  if (messages_.took_jump()) begin_anew();
  const bool in_order = resequencer_.in_order(d.psn);
  if (psns_.started() && distance(psns_.highest(), d.psn) < 0) {
    ++counters_.reordered;
    if (resequencer_.given_up(d.psn)) ++counters_.late;
  }
  // It has come, whatever becomes of it.
  psns_.mark(d.psn);
  Verdict v = Ok{};
  if (!message) {
    v = fail(message.error());
  } else {
    if (messages_.note(d.msn)) {
      writes_.forget_stale(messages_);
      sends_.forget_stale(messages_);
    }
    v = dispatch(d, source, in_order, now);
  }
  resequencer_.arrived(d.psn, psns_, now);
  if (resequencer_.holding() != 0) drain();
  return v;
}

// The peer's numbers have jumped far away: an outage, or it started over. What was under way is
// over.
void UcReceivePath::begin_anew() {
  finish();
  resequencer_.restart();
  messages_.restart();
}

UcReceivePath::Verdict UcReceivePath::dispatch(const WdpData& d, const Source& source,
                                               bool in_order, Time now) {
  if (needs_immediate(d) && !parameters_.immediate) return fail(WdpDrop::not_negotiated);
  switch (d.opcode) {
    case Opcode::write:
      return write(d, source, now);
    case Opcode::read_request:
      // Untagged, so it takes its turn (rule 3): it is to see what Writes before it wrote.
      return in_order ? responder_.received(d, source.payload) : hold(d, source, now);
    case Opcode::read_response:
      return requester_.received(d, source.payload, source.in_place, now);
    default:
      return send(d, source, in_order, now);
  }
}

// --- Writes: rules 5 and 6

// The whole message has to fit, so that its other segments do.
UcReceivePath::Verdict UcReceivePath::target(const WdpData& d, PieceList& places) {
  // A message of no bytes names no memory (spec/rdmap 2.4).
  if (d.mlen == 0) return Ok{};
  if (d.to.value() < d.mo.value()) {
    errors_.report(wire::term::kTaggedToWrap, d);
    return fail(WdpDrop::protection);
  }
  const TaggedOffset base{d.to.value() - d.mo.value()};
  const auto p = consumer_.memory().remote(d.stag, base, d.mlen, Access::remote_write);
  if (!p.ok()) {
    errors_.report(work::write_fault(p.error()), d);
    return fail(WdpDrop::protection);
  }
  places.add(*p + d.mo.value(), d.payload_size());
  return Ok{};
}

bool UcReceivePath::put(const Source& source, const PieceList& places) {
  if (!source.in_place && !place(source.payload, places)) return false;
  counters_.bytes_placed += places.bytes();
  return true;
}

UcReceivePath::Verdict UcReceivePath::put_write(const WdpData& d, const Source& source,
                                                const PieceList& places) {
  if (!put(source, places)) return lose_target(d);
  counters_.write_bytes_placed += places.bytes();
  return Ok{};
}

// The program has unmapped it.
UcReceivePath::Verdict UcReceivePath::lose_target(const WdpData& d) {
  errors_.report(work::write_fault(work::MemoryFault::gone), d);
  return fail(WdpDrop::protection);
}

UcReceivePath::Verdict UcReceivePath::write(const WdpData& d, const Source& source, Time now) {
  PieceList places;
  if (const auto v = target(d, places); !v) return v;
  if (!d.flags.immediate) return put_write(d, source, places);
  Psn last = d.psn;
  if (d.segment_count() == 1) {
    // Complete in itself: no context.
    if (messages_.closed(d.msn)) return fail(WdpDrop::superseded);
    if (const auto v = put_write(d, source, places); !v) return v;
    messages_.close(d.msn);
  } else {
    const auto context = writes_.find(d, messages_);
    if (!context.ok()) return fail(context.error());
    if (const auto v = put_write(d, source, places); !v) return v;
    if (!writes_.placed(**context, d, messages_)) return Ok{};
    last = (*context)->last;
  }
  // All bytes are placed. The news takes its turn among the Sends.
  resequencer_.hold({.psn = last, .since = now, .header = d, .payload = {}});
  return Ok{};
}

void UcReceivePath::deliver_immediate(const WdpData& d) {
  work::Receive receive;
  if (!sends_.take_receive(receive)) {
    // "No WQE: message silently lost, counter."
    ++counters_.messages_without_receive;
    counters_.drops.count(WdpDrop::no_receive);
    return;
  }
  ++counters_.messages_complete;
  consumer_.receive_done(receive, work::Status::success,
                         {.write_with_immediate = true,
                          .solicited = d.solicited(),
                          .has_immediate = true,
                          .length = d.mlen,
                          .immediate = d.imm_or_read});
}

// --- Sends: rules 3, 7 and 8

UcReceivePath::Verdict UcReceivePath::send(const WdpData& d, const Source& source, bool in_order,
                                           Time now) {
  // One receive completion tells of an immediate or of an STag, not of both.
  if (d.flags.immediate && wire::invalidates(d.opcode)) return fail(WdpDrop::bad_opcode);
  if (in_order || sends_.is_open(d.msn)) return send_in_turn(d, source);
  return hold(d, source, now);
}

UcReceivePath::Verdict UcReceivePath::hold(const WdpData& d, const Source& source, Time now) {
  ++counters_.held;
  resequencer_.hold({.psn = d.psn,
                     .since = now,
                     .header = d,
                     .payload = {source.payload.begin(), source.payload.end()}});
  return Ok{};
}

UcReceivePath::Verdict UcReceivePath::send_in_turn(const WdpData& d, const Source& source) {
  PieceList places;
  if (const auto v = sends_.open(d, places); !v) return v;
  if (!put(source, places)) return fail(sends_.unreachable());
  if (!sends_.placed(d)) return Ok{};
  const auto delivered = sends_.deliver();
  if (delivered.ok()) return Ok{};
  errors_.report(work::invalidate_fault(delivered.error()), d);
  return fail(WdpDrop::protection);
}

// --- what had to wait

void UcReceivePath::drain() {
  while (const auto held = resequencer_.take_due(psns_)) {
    const WdpData& d = held->header;
    if (d.opcode == Opcode::write) {
      deliver_immediate(d);
      continue;
    }
    const auto v = d.opcode == Opcode::read_request ? responder_.received(d, held->payload)
                                                    : send_in_turn(d, {.payload = held->payload});
    if (!v.ok()) counters_.drops.count(v.error());
  }
}

void UcReceivePath::tick(Time now) {
  if (now < resequencer_.deadline()) return;
  resequencer_.tick(psns_, now);
  drain();
}

void UcReceivePath::finish() {
  resequencer_.give_up_all();
  drain();
  // What lacks bytes by now never gets them.
  sends_.restart();
  writes_.restart();
}

void UcReceivePath::trim() {
  resequencer_.trim();
  sends_.trim();
  writes_.trim();
}

// --- in two steps

bool UcReceivePath::direct(const WdpData& d, PieceList& places) {
  if (!psns_.started() || psns_.seen(d.psn) ||
      distance(psns_.highest(), d.psn) > static_cast<int32_t>(kPsnWindow) ||
      !messages_.near(d.msn)) {
    return false;
  }
  if (d.opcode == Opcode::read_response) return requester_.direct(d, places);
  if (needs_immediate(d) && (!parameters_.immediate || wire::invalidates(d.opcode))) return false;
  if (d.opcode == Opcode::write) {
    if (d.flags.immediate && !writes_.takes(d, messages_)) return false;
    const TaggedOffset base{d.to.value() - d.mo.value()};
    if (d.mlen == 0 || d.to.value() < d.mo.value()) return false;
    const auto p = consumer_.memory().remote(d.stag, base, d.mlen, Access::remote_write);
    if (!p.ok()) return false;
    places.add(*p + d.mo.value(), d.payload_size());
    return true;
  }
  return wire::is_send(d.opcode) && sends_.waits_for(d) && sends_.open(d, places).ok();
}

}  // namespace weft::wdp
