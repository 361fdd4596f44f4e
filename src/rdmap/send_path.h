// The requester's half of a stream: takes work requests from the send queue in order, has them
// written, and completes them in order (RFC 5040 section 5.5, spec/rdmap 3.4, 4).
#pragma once

#include <algorithm>
#include <optional>

#include "mpa/fpdu_writer.h"
#include "rdmap/coverage.h"
#include "rdmap/limits.h"
#include "rdmap/request_writer.h"
#include "work/consumer.h"

namespace weft::rdmap {

// Above 400 lines with its source: what each FPDU calls is inline, in the header.
class SendPath {
 public:
  SendPath(work::Consumer& consumer, const StreamConfig& config, uint32_t seed);

  // Is there an FPDU that could go out now, were there room? Carries out local operations on the
  // way, but for those that would have to wait for what `batch` refers to (may_execute()).
  bool ready(const mpa::TxBatch* batch = nullptr);
  // Inside a message, whose FPDUs must follow each other (spec/rdmap 2.2)?
  bool in_message() const { return requests_.in_message(); }
  void limit_payload() { requests_.limit_payload(); }
  // See Stream::may_gather().
  bool may_gather(bool burst) const;
  // Writes one FPDU. False when the batch has no room for it or there is none.
  bool write_fpdu(mpa::FpduWriter& writer, mpa::TxBatch& batch);
  // The kernel has everything that was written so far.
  void llp_took_all();

  // Queues a zero-length Write outside of any work request: RTR, kick, or a carrier for AW.
  void add_empty_write(bool ack_wanted) {
    ++empty_writes_;
    empty_write_ack_ = empty_write_ack_ || ack_wanted;
  }
  // One is due, and not inside a message. Needs no send queue.
  bool owes_empty_write() const { return empty_writes_ > 0 && !in_message(); }
  bool write_empty_write(mpa::FpduWriter& writer, mpa::TxBatch& batch);
  // The RTR read of RFC 6581: takes QN 1 MSN 1 and one ORD slot.
  void write_rtr_read(mpa::FpduWriter& writer, mpa::TxBatch& batch) {
    requests_.write_rtr_read(writer, batch);
  }

  // The peer's Delivered: its run has this length, at most messages().
  void covered(uint64_t run);
  // The peer has no receive for message covered + 1 and asks for this much patience; or has one at
  // last.
  void receiver_not_ready(uint8_t timer_code, Time now);
  void receiver_ready() { rnr_deadline_ = Time::never(); }
  Time rnr_deadline() const { return rnr_deadline_; }

  void trim() {
    coverage_.trim();
    reads().trim();
  }

  OutboundReads& reads() { return requests_.reads(); }
  // The response to the oldest read or atomic is placed.
  void answered();
  // Where bytes [offset, offset + length) of the response to a read or atomic belong. Not of the
  // RTR read.
  Result<Ok, work::MemoryFault> sink_pieces(const OutboundRead& read, uint32_t offset,
                                            uint32_t length, PieceList& out);
  // Completes what can be, from the head of the queue.
  void complete();

  // Something failed on this side: the request stays at the head with its status. Nothing when all
  // is well.
  bool failed() const { return failed_; }
  // Gives the first request that is not complete `status`, so that the flush reports it so.
  void blame_oldest(work::Status status);
  void blame(uint64_t request, work::Status status);
  // The first that is not complete and sends from `address`, or from memory that is deregistered.
  void blame_source(const void* address);
  // The one whose message the peer does not take.
  void blame_waiting(work::Status status);

  // No request is on its way, and after close() none is to go any more.
  bool drained() const;
  uint64_t messages() const { return coverage_.messages(); }
  // FPDUs of requests so far.
  uint64_t fpdus() const { return fpdus_; }
  // Asks the peer to cover everything sent so far, if it was not asked yet.
  void want_all_covered();
  // The stream closes when all that is posted by now is covered: it asks for it at its end. What is
  // posted later is not sent.
  void close() {
    paused_ = false;
    closing_ = true;
    end_ = queue_.tail();
  }
  // No request is begun while paused. Those begun before ask to be covered.
  void pause(bool on) { paused_ = on; }
  // Every request that was begun is complete.
  bool idle() const { return queue_.head() == next_ && !in_message(); }

 private:
  bool start(const mpa::TxBatch* batch);
  static bool may_execute(const mpa::TxBatch* batch);
  uint64_t end() const { return std::min(end_, queue_.tail()); }
  bool blocked(const work::SendWqe& w);
  work::Status acceptable(const work::SendWqe& w);
  // The same of a request whose payload is a list. A call of its own, for most have none.
  [[gnu::noinline]] work::Status find_pieces(const work::SendWqe& w, work::Access need);
  Result<Ok, work::MemoryFault> local_pieces(const work::SendWqe& wqe, uint32_t offset,
                                             uint32_t length, work::Access need, PieceList& out);
  void poison(work::Status status);
  void lose_source(work::SendWqe& w);
  bool covers(const work::SendWqe& w, uint64_t index) const;

  work::Consumer& consumer_;
  work::SendQueue& queue_;
  const StreamConfig& config_;
  Coverage coverage_;
  RequestWriter requests_;

  std::byte* place_ = nullptr;  // of the request next_, when it lies in one piece; set by start()
  uint64_t next_ = 0;           // request being sent, or to be sent next
  uint64_t llp_took_ = 0;       // requests before this index are with the kernel
  uint64_t fpdus_ = 0;
  uint32_t empty_writes_ = 0;
  bool empty_write_ack_ = false;
  bool started_ = false;  // start() said yes, and nothing was written since

  Time rnr_deadline_ = Time::never();
  // How the request next_ will fail once those before it are complete.
  std::optional<work::Status> poison_;
  bool failed_ = false;
  bool closing_ = false;
  bool paused_ = false;
  uint64_t end_ = UINT64_MAX;  // closing: the first request that is not sent
};

}  // namespace weft::rdmap
