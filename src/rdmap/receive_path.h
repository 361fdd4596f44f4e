// The other half of a stream: judges every segment that comes, says where its payload belongs, and
// delivers messages in order (RFC 5040 sections 5 to 7, spec/rdmap 3.2).
//
//   tagged:    Write -------------------------> InboundWrite     the program's memory
//              Read Response, Delivered ------> InboundResponses requests of ours
//   untagged:  Atomic Response ---------------> InboundResponses
//              Send, Immediate ---------------> InboundSends     receives
//              Read Request, Atomic Request --> InboundReads     what is to be answered
//              Terminate                                         the stream
//
// A Send or Immediate without a receive, and what is behind it, waits among the EarlyArrivals.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "ddp/segment_receiver.h"
#include "rdmap/delivery.h"
#include "rdmap/early_arrivals.h"
#include "rdmap/inbound_reads.h"
#include "rdmap/inbound_responses.h"
#include "rdmap/inbound_sends.h"
#include "rdmap/inbound_write.h"
#include "rdmap/limits.h"
#include "rdmap/opcode_rules.h"
#include "rdmap/quote.h"
#include "work/consumer.h"

namespace weft::rdmap {

using mpa::Verdict;

class ReceivePath final : public ddp::Ulp {
 public:
  ReceivePath(work::Consumer& consumer, const StreamConfig& config, SendPath& send_path,
              InboundReads& inbound, Delivery& delivery);

  Verdict check(const ddp::Segment& s) override;
  Verdict open(const ddp::Segment& s) override;
  Verdict where(const ddp::Segment& s, size_t offset, size_t length, PieceList& places) override;
  wire::TermError unreachable(const ddp::Segment& s) override;
  Verdict deliver(const ddp::Segment& s) override;

  // Receives were posted: early arrivals may go on. True when one did.
  Result<bool, wire::TermError> receives_posted();
  bool waits_for_receive() const { return !early_.empty(); }
  // A plain peer filled the room for early arrivals: leave the rest in the socket (spec/rdmap 4.7).
  bool full() const { return !config_.mpa.extension && early_full(); }

  // The receive of a message that will never be complete, so that it can be flushed.
  std::optional<work::Receive> abandon_receive() { return sends_.abandon(); }

  void trim() {
    early_.trim();
    sends_.trim();
  }
  // The call that brought the last segment is over: somebody may deregister its place.
  void forget_place() { write_.forget_place(); }

  // What a Terminate quotes of `s`, which is the last segment that came.
  Quote quote(const ddp::Segment& s) const;
  // And of the message that waits longest; only while one does.
  Quote quote_waiting() const;

  // The last failure was that of a receive of our own, not of the peer.
  bool own_fault() const { return sends_.own_fault(); }

  // What came in the last Terminate; nullptr until one did.
  const wire::Terminate* terminate() const { return terminate_.get(); }
  // See InboundResponses::take_report().
  std::optional<DeliveredReport> take_report() { return responses_.take_report(); }

 private:
  static constexpr size_t kControlSize = wire::Terminate::kMaxSize;

  Verdict open_write(const ddp::Segment& s);
  Verdict open_send(const ddp::Segment& s);
  Verdict open_control(const ddp::Segment& s, size_t size);

  Verdict deliver_write(const ddp::Segment& s);
  Verdict deliver_send(const ddp::Segment& s);
  Verdict deliver_immediate(const ddp::Segment& s);
  Verdict deliver_request(const ddp::Segment& s);

  Verdict accept_early(EarlyArrival& a, const work::Receive& r);
  EarlyArrival& park(EarlyArrival::Kind kind, const ddp::Segment& s);
  bool early_full() const;

  stats::QpCounters& counters() const { return config_.counters.qp->counters; }

  const StreamConfig& config_;
  InboundReads& inbound_;
  Delivery& delivery_;

  InboundResponses responses_;
  InboundWrite write_;
  InboundSends sends_;
  EarlyArrivals early_;
  std::array<std::byte, kControlSize> control_{};
  std::unique_ptr<wire::Terminate> terminate_;
};

}  // namespace weft::rdmap
