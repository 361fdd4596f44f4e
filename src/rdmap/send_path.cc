#include "rdmap/send_path.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "wire/rdmap_messages.h"
#include "work/pieces.h"

namespace weft::rdmap {
namespace {

bool needs_extension(work::Operation op) {
  return op == work::Operation::write_immediate || op == work::Operation::send_immediate ||
         is_atomic(op);
}

const char* name(work::Operation op) {
  switch (op) {
    case work::Operation::write_immediate:
      return "RDMA Write with immediate";
    case work::Operation::send_immediate:
      return "Send with immediate";
    default:
      return "atomic";
  }
}

}  // namespace

SendPath::SendPath(work::Consumer& consumer, const StreamConfig& config, uint32_t seed)
    : consumer_(consumer),
      queue_(consumer.send_queue()),
      config_(config),
      coverage_(config.mpa.extension, config.mpa.extension && !config.llp_completion,
                queue_.capacity()),
      requests_(consumer.memory(), config, coverage_, seed),
      next_(queue_.head()),
      llp_took_(next_) {}

bool SendPath::ready(const mpa::TxBatch* batch) {
  if (in_message() || empty_writes_ > 0) return true;
  return start(batch);
}

// It may close a window, and then the memory is the program's. An answer to a Read from there may
// be in the batch, by reference: it goes out first.
bool SendPath::may_execute(const mpa::TxBatch* batch) {
  return batch == nullptr || !batch->refers();
}

// Looks at the request that is next until there is one with something to send that may go now.
bool SendPath::start(const mpa::TxBatch* batch) {
  started_ = false;
  while (!poison_ && !paused_ && next_ < end()) {
    work::SendWqe& w = queue_.at(next_);
    if (blocked(w)) return empty_writes_ > 0;
    if (is_local(w.operation)) {
      if (!may_execute(batch)) return empty_writes_ > 0;
      w.answered = true;
      const work::Status done = consumer_.execute(w);
      w.last_message = coverage_.messages();
      if (done != work::Status::success) {
        poison(done);
        return empty_writes_ > 0;
      }
      ++next_;
      // It completes behind the requests before it, and no message of its own asks for them.
      if (w.signaled || (next_ - queue_.head()) * 2 >= queue_.capacity()) want_all_covered();
      complete();
      continue;
    }
    if (const work::Status s = acceptable(w); s != work::Status::success) {
      poison(s);
      return empty_writes_ > 0;
    }
    started_ = true;
    return true;
  }
  if (closing_ || paused_) want_all_covered();
  return empty_writes_ > 0;
}

bool SendPath::blocked(const work::SendWqe& w) {
  if (w.fence && reads().outstanding() > 0) return true;
  if (has_response(w.operation) && reads().full() && reads().limit() > 0) return true;
  if (!is_send(w.operation) || coverage_.has_credit(w.length)) return false;
  // Perhaps nobody asked yet: half the credit was not reached, and this message is larger than the
  // rest of it.
  want_all_covered();
  return true;
}

// Errors that the request carries in itself, found before its first byte goes out.
work::Status SendPath::acceptable(const work::SendWqe& w) {
  if (needs_extension(w.operation) && !config_.mpa.extension) {
    WEFT_LOG(warn,
             "%s is not possible on this connection: plain iWARP has none, and the peer did not "
             "agree to "
             "weft's extension. Run weft on both sides (and leave WEFT_EXT=auto)",
             name(w.operation));
    return work::Status::local_qp_operation;
  }
  if (has_response(w.operation) && reads().limit() == 0) {
    WEFT_LOG(warn,
             "RDMA Read is not possible on this connection: the peer allows no inbound reads (its "
             "IRD is 0)");
    return work::Status::local_qp_operation;
  }
  const work::Access need =
      has_response(w.operation) ? work::Access::local_write : work::Access::local_read;
  // Most requests have one segment, and need no list.
  if (w.segments != 1 || is_atomic(w.operation) || w.length == 0) return find_pieces(w, need);
  const work::LocalSegment& s = *w.segment();
  const auto at = requests_.memory().local(s.lkey, s.address, w.length, need);
  place_ = at.ok() ? *at : nullptr;
  return at.ok() ? work::Status::success : work::Status::local_protection;
}

work::Status SendPath::find_pieces(const work::SendWqe& w, work::Access need) {
  place_ = nullptr;
  PieceList pieces;
  const uint32_t length = is_atomic(w.operation) ? work::kAtomicBytes : w.length;
  if (!local_pieces(w, 0, length, need, pieces).ok()) return work::Status::local_protection;
  // The caller of start() writes the first FPDU before anybody may deregister it.
  if (pieces.pieces().size() == 1) {
    place_ = static_cast<std::byte*>(pieces.pieces().front().iov_base);
  }
  return work::Status::success;
}

// The request fails, but those before it may still succeed: it is reported when its turn comes.
void SendPath::poison(work::Status status) {
  poison_ = status;
  want_all_covered();
  complete();
}

void SendPath::want_all_covered() {
  if (coverage_.unasked() && !empty_write_ack_) add_empty_write(true);
}

bool SendPath::write_fpdu(mpa::FpduWriter& writer, mpa::TxBatch& batch) {
  using Written = RequestWriter::Written;
  if (!in_message()) {
    if (empty_writes_ == 0 && !std::exchange(started_, false) && !start(&batch)) {
      return false;
    }
    if (empty_writes_ > 0) return write_empty_write(writer, batch);
  }
  work::SendWqe& w = queue_.at(next_);
  const Written written = requests_.write(w, next_, place_, writer, batch);
  if (written == Written::no_room) return false;
  if (written == Written::lost) {
    lose_source(w);
    // Those before it are to be covered.
    return poison_ && owes_empty_write() && write_empty_write(writer, batch);
  }
  ++fpdus_;
  if (written == Written::message) ++next_;
  return true;
}

// Its memory was deregistered, or is gone. In the middle of a message the stream cannot go on.
void SendPath::lose_source(work::SendWqe& w) {
  if (!in_message()) {
    poison(work::Status::local_protection);
    return;
  }
  w.status = work::Status::local_protection;
  failed_ = true;
}

bool SendPath::write_empty_write(mpa::FpduWriter& writer, mpa::TxBatch& batch) {
  if (!requests_.write_empty(empty_write_ack_, writer, batch)) return false;
  empty_write_ack_ = false;
  --empty_writes_;
  return true;
}

Result<Ok, work::MemoryFault> SendPath::local_pieces(const work::SendWqe& w, uint32_t offset,
                                                     uint32_t length, work::Access need,
                                                     PieceList& out) {
  return work::local_pieces(requests_.memory(), w, offset, length, need, out);
}

Result<Ok, work::MemoryFault> SendPath::sink_pieces(const OutboundRead& read, uint32_t offset,
                                                    uint32_t length, PieceList& out) {
  return local_pieces(queue_.at(read.request), offset, length, work::Access::local_write, out);
}

void SendPath::llp_took_all() {
  llp_took_ = next_;
  if (!coverage_.awaited()) complete();
}

void SendPath::covered(uint64_t run) {
  if (!coverage_.cover(run)) return;
  rnr_deadline_ = Time::never();
  complete();
}

void SendPath::receiver_not_ready(uint8_t timer_code, Time now) {
  if (config_.rnr_retry == 7) return;                       // for ever
  if (coverage_.covered() == coverage_.messages()) return;  // there is no message that could wait
  // A peer that says so again of the same message gets no more time by that.
  rnr_deadline_ = std::min(rnr_deadline_, now + rnr_time(timer_code) * (config_.rnr_retry + 1));
}

void SendPath::answered() {
  const uint64_t request = reads().oldest()->request;
  reads().pop_oldest();
  if (request == OutboundRead::kNoRequest) return;
  work::SendWqe& w = queue_.at(request);
  w.answered = true;
  // The peer answers nothing before all messages ahead of it are placed and consumed
  // (spec/rdmap 3.3, 4.4), so the answer covers them. Requests that did not ask to be covered would
  // otherwise keep this one from completing.
  if (coverage_.awaited()) covered(w.last_message);
  complete();
}

bool SendPath::covers(const work::SendWqe& w, uint64_t index) const {
  if (has_response(w.operation) || is_local(w.operation)) return w.answered;
  return coverage_.awaited() ? w.last_message <= coverage_.covered() : index < llp_took_;
}

void SendPath::complete() {
  for (uint64_t head = queue_.head(); head < next_; ++head) {
    work::SendWqe& w = queue_.at(head);
    if (!covers(w, head)) return;
    consumer_.send_done(w, work::Status::success);
    queue_.free_head();
  }
  if (poison_ && queue_.head() == next_) {
    queue_.at(next_).status = *poison_;
    failed_ = true;
  }
}

void SendPath::blame_oldest(work::Status status) {
  if (queue_.head() < queue_.tail()) queue_.at(queue_.head()).status = status;
}

void SendPath::blame(uint64_t request, work::Status status) {
  if (request >= queue_.head() && request < next_) queue_.at(request).status = status;
}

void SendPath::blame_source(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  for (uint64_t i = queue_.head(); i <= next_ && i < queue_.tail(); ++i) {
    work::SendWqe& w = queue_.at(i);
    if (has_response(w.operation) || is_local(w.operation)) continue;
    PieceList pieces;
    bool its = !local_pieces(w, 0, w.length, work::Access::local_read, pieces).ok();
    for (const IoVec& v : pieces.pieces()) {
      const auto* begin = static_cast<const std::byte*>(v.iov_base);
      its |= at >= begin && at < begin + v.iov_len;
    }
    if (!its) continue;
    w.status = work::Status::local_protection;
    return;
  }
}

void SendPath::blame_waiting(work::Status status) {
  for (uint64_t i = queue_.head(); i < next_; ++i) {
    work::SendWqe& w = queue_.at(i);
    if (is_local(w.operation) || w.last_message <= coverage_.covered()) continue;
    w.status = status;
    return;
  }
  blame_oldest(status);
}

bool SendPath::may_gather(bool burst) const {
  constexpr uint64_t kMostWaiting = 256;      // requests
  constexpr uint64_t kMostBytes = 64 * 1024;  // if all are as long as the last one
  // In memory a batch costs no system call: it need only be large enough that the visits to the
  // stream, at both ends, do not count, and so small that it stays in the first-level cache.
  constexpr uint64_t kMostWaitingInMemory = 32;
  constexpr uint64_t kUnderWay = 4;  // requests that the program waits for
  if (!coverage_.awaited() || in_message()) return false;
  const uint64_t tail = queue_.tail();
  const uint64_t waiting = tail - next_;
  if (waiting == 0 || waiting >= (config_.by_memory ? kMostWaitingInMemory : kMostWaiting)) {
    return false;
  }
  const work::SendWqe& last = queue_.at(tail - 1);
  if (waiting * last.length > kMostBytes) return false;
  return coverage_.asked() >= coverage_.covered() + kUnderWay || (burst && !last.signaled);
}

bool SendPath::drained() const {
  return queue_.head() == end() && requests_.reads().outstanding() == 0 && empty_writes_ == 0;
}

}  // namespace weft::rdmap
