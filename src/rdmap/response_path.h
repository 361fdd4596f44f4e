// The responder's half of a stream that speaks: answers the peer's reads and atomics, in the order
// of their requests (RFC 5040 section 5.5, RFC 7306 section 5).
#pragma once

#include "mpa/fpdu_writer.h"
#include "rdmap/inbound_reads.h"
#include "rdmap/limits.h"
#include "wire/terminate.h"
#include "work/consumer.h"

namespace weft::rdmap {

class ResponsePath {
 public:
  // Both have to stay.
  ResponsePath(work::Consumer& consumer, const StreamConfig& config);

  // Accepted and not answered yet.
  InboundReads& requests() { return requests_; }
  bool empty() const { return requests_.empty(); }
  // A Read Response is cut in the middle, and its FPDUs must follow each other (spec/rdmap 2.2).
  bool in_message() const { return in_message_; }
  // The configuration has changed how much an FPDU may carry.
  void limit_payload() { payload_ = max_payload(config_, wire::TaggedHeader::kSize); }

  // Writes one FPDU of the oldest answer; there is one.
  enum class Written : uint8_t {
    yes,
    no_room,  // in the batch
    refused,  // its memory is not there any more: refusal() says so to the peer
  };
  Written write(mpa::FpduWriter& writer, mpa::TxBatch& batch);
  wire::Terminate refusal() const;

  void trim() { requests_.trim(); }

 private:
  Written write_atomic(const InboundRead& answer, mpa::FpduWriter& writer, mpa::TxBatch& batch);
  Written write_read(InboundRead& answer, mpa::FpduWriter& writer, mpa::TxBatch& batch);
  Written refuse(work::MemoryFault fault);

  work::Consumer& consumer_;
  const StreamConfig& config_;
  uint32_t payload_;  // of an FPDU
  bool in_message_ = false;
  InboundReads requests_;
  Msn atomic_msn_{1};
  wire::TermError refused_;
};

}  // namespace weft::rdmap
