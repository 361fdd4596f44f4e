#include "rdmap/inbound_sends.h"

#include "base/guarded.h"
#include "wire/rdmap_messages.h"
#include "work/faults.h"

namespace weft::rdmap {

namespace term = wire::term;
using ddp::Segment;
using wire::Refusal;

mpa::Verdict InboundSends::fail_receive(const work::Receive& r, work::Status status,
                                        wire::TermError error) {
  consumer_.receive_done(r, status, work::Arrival{});
  return fail(error);
}

mpa::Verdict InboundSends::fail_too_long() {
  arriving_ = false;
  return fail_receive(*receive_, work::Status::local_length,
                      term::kUntaggedTooLong.because(Refusal::receive_too_short));
}

// Our own program's fault, but the peer's request is what fails: it sees a remote operation error,
// as on InfiniBand.
mpa::Verdict InboundSends::lose(const work::Receive& r) {
  own_fault_ = true;
  return fail_receive(r, work::Status::local_protection,
                      term::kOperationCatastrophicStream.because(Refusal::own_receive_memory));
}

wire::TermError InboundSends::unreachable() {
  arriving_ = false;
  return lose(*receive_).error();
}

std::optional<work::Receive> InboundSends::abandon() {
  if (!std::exchange(arriving_, false) || early_) return {};
  return *receive_;
}

mpa::Verdict InboundSends::complete(const Segment& first, const work::Receive& r, uint64_t length) {
  const wire::Opcode op = first.control.opcode;
  work::Arrival a{.solicited = wire::is_solicited(op),
                  .has_immediate = wire::send_carries_immediate(op),
                  .invalidated = wire::invalidates(op),
                  .length = static_cast<uint32_t>(length)};
  if (a.has_immediate) a.immediate = first.ulp_word;
  if (a.invalidated) {
    // RFC 5040 section 5.3: the STag is invalid before the ULP learns of the Send.
    a.invalidated_stag = Stag{first.ulp_word};
    if (const auto done = consumer_.memory().invalidate(a.invalidated_stag); !done.ok()) {
      return fail_receive(r, work::Status::flushed, work::invalidate_fault(done.error()));
    }
  }
  consumer_.receive_done(r, work::Status::success, a);
  return Ok{};
}

mpa::Verdict InboundSends::accept(const EarlyArrival& send, const work::Receive& r) {
  if (!send.complete) {
    early_ = false;
    *receive_ = r;
  }
  Verdict v = fill(send, r);
  if (!send.complete && !v.ok()) arriving_ = false;
  return v.ok() && send.complete ? complete(send.first, r, send.data.size()) : v;
}

mpa::Verdict InboundSends::fill(const EarlyArrival& send, const work::Receive& r) {
  if (send.data.size() > r.length) {
    return fail_receive(r, work::Status::local_length,
                        term::kUntaggedTooLong.because(Refusal::receive_too_short));
  }
  PieceList places;
  if (Verdict v = receive_pieces(r, 0, send.data.size(), places); !v.ok()) return v;
  const std::byte* from = send.data.data();
  for (const IoVec& piece : places.pieces()) {
    if (!copy_guarded(piece.iov_base, from, piece.iov_len)) return lose(r);
    from += piece.iov_len;
  }
  return Ok{};
}

void InboundSends::complete_immediate(const Segment& s, const work::Receive& r, Bytes payload,
                                      uint32_t length) {
  consumer_.receive_done(r, work::Status::success,
                         work::Arrival{.write_with_immediate = true,
                                       .solicited = wire::is_solicited(s.control.opcode),
                                       .has_immediate = true,
                                       .length = length,
                                       .immediate = wire::Immediate::parse(payload.data()).value});
}

}  // namespace weft::rdmap
