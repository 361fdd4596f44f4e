// Work requests as FPDUs: the part of the requester that speaks (RFC 5040 section 5, RFC 7306
// section 5, spec/rdmap 2 and 3.4).
#pragma once

#include "mpa/fpdu_writer.h"
#include "rdmap/coverage.h"
#include "rdmap/limits.h"
#include "rdmap/outbound_reads.h"
#include "wire/ddp_header.h"
#include "work/memory.h"
#include "work/work_request.h"

namespace weft::rdmap {

// Engine holder only. What the arguments of the constructor refer to has to stay.
class RequestWriter {
 public:
  RequestWriter(work::Memory& memory, const StreamConfig& config, Coverage& coverage,
                uint32_t seed);

  // Inside a message, whose FPDUs must follow each other (spec/rdmap 2.2)?
  bool in_message() const { return in_message_; }
  // The configuration has changed how much an FPDU may carry.
  void limit_payload();
  // Where payload is taken from.
  work::Memory& memory() const { return memory_; }
  // Reads and atomics that wait for their answers.
  OutboundReads& reads() { return reads_; }
  const OutboundReads& reads() const { return reads_; }

  // Writes one FPDU of the request, which stands at `index` of the send queue. `place`: where its
  // payload lies in one piece, looked up in this turn of the engine; else nullptr.
  enum class Written : uint8_t {
    no_room,  // in the batch
    part,     // of the message
    message,  // with this one it is out
    lost,     // its memory is not there any more
  };
  Written write(work::SendWqe& w, uint64_t index, std::byte* place, mpa::FpduWriter& writer,
                mpa::TxBatch& batch);
  // A zero-length Write outside of any request. False when there is no room.
  bool write_empty(bool asks, mpa::FpduWriter& writer, mpa::TxBatch& batch);
  // The RTR read of RFC 6581: takes QN 1 MSN 1 and one ORD slot.
  void write_rtr_read(mpa::FpduWriter& writer, mpa::TxBatch& batch);

 private:
  Written write_payload(work::SendWqe& w, std::byte* place, mpa::FpduWriter& writer,
                        mpa::TxBatch& batch);
  Written write_short(work::SendWqe& w, const std::byte* place, mpa::FpduWriter& writer,
                      mpa::TxBatch& batch);
  wire::UntaggedHeader send_header(const work::SendWqe& w, wire::Control control) const;
  Written write_immediate(work::SendWqe& w, mpa::FpduWriter& writer, mpa::TxBatch& batch);
  Written write_read(work::SendWqe& w, uint64_t index, mpa::FpduWriter& writer,
                     mpa::TxBatch& batch);
  Written write_atomic(work::SendWqe& w, uint64_t index, mpa::FpduWriter& writer,
                       mpa::TxBatch& batch);
  Written finish(work::SendWqe& w);
  stats::QpCounters& counters() const { return config_.counters.qp->counters; }

  work::Memory& memory_;
  const StreamConfig& config_;
  Coverage& coverage_;
  uint32_t tagged_payload_;    // of an FPDU
  uint32_t untagged_payload_;  // not more than of a tagged one

  bool in_message_ = false;
  bool immediate_left_ = false;  // the Write is out, its Immediate is not
  uint32_t offset_ = 0;          // payload bytes of the request in FPDUs already
  Msn send_msn_{1};
  Msn read_msn_{1};
  OutboundReads reads_;
};

}  // namespace weft::rdmap
