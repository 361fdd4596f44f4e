// What the peer says to requests of ours: Read Responses and Atomic Responses (RFC 5040
// section 5.2, RFC 7306 section 5), and Delivered (spec/rdmap 4.1). The requester's side of what
// comes in.
#pragma once

#include <optional>
#include <utility>

#include "ddp/segment.h"
#include "mpa/ulpdu_sink.h"
#include "rdmap/send_path.h"

namespace weft::rdmap {

// A Delivered. Its run is no longer than what was sent.
struct DeliveredReport {
  uint64_t run;
  // min_rnr_timer code, where a message waits for a receive.
  std::optional<uint8_t> waits_with_timer;
};

// Engine holder only. An error ends the stream, with that Terminate.
class InboundResponses {
 public:
  using Verdict = mpa::Verdict;
  explicit InboundResponses(SendPath& requests) : requests_(requests) {}

  // --- Read Response: for the oldest request that is not answered, in order, and with its last
  // byte at its end (RFC 5041 section 7.1)
  Verdict open_read(const ddp::Segment& s);
  // Where bytes [offset, offset + length) of the payload belong. Only behind open_read().
  Verdict where_read(size_t offset, size_t length, PieceList& places);
  // The sink cannot be reached: the request is to blame.
  wire::TermError unreachable();
  // The segment is in its place.
  void read_placed(const ddp::Segment& s);

  // --- Atomic Response, of wire::AtomicResponse::kSize bytes
  Verdict deliver_atomic(const std::byte* response);

  // --- Delivered
  static Verdict open_report(const ddp::Segment& s);
  Verdict deliver_report(const ddp::Segment& s);
  // The last one since this was called, for the stream to act on.
  std::optional<DeliveredReport> take_report() { return std::exchange(report_, std::nullopt); }

 private:
  wire::TermError lose_sink(const OutboundRead& read);

  SendPath& requests_;
  std::optional<DeliveredReport> report_;
};

}  // namespace weft::rdmap
