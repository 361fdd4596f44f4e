// Reads and atomics that wait for their response: the requester's side of IRD/ORD (RFC 5040
// section 6.1, RFC 7306 section 5).
#pragma once

#include <algorithm>

#include "base/fixed_ring.h"
#include "wire/terminate.h"
#include "work/send_queue.h"

namespace weft::rdmap {

struct OutboundRead {
  static constexpr uint64_t kNoRequest = UINT64_MAX;  // the RTR read: belongs to no work request
  uint64_t request = kNoRequest;                      // index in the send queue
  Msn msn;                                            // of the request, on queue 1
  bool atomic = false;
  Stag sink;                // one-shot, known to this stream alone (spec/rdmap 1.5)
  uint32_t length = 0;      // bytes wanted
  uint32_t received = 0;    // bytes placed
  uint32_t request_id = 0;  // atomics
};

class OutboundReads {
 public:
  // At most `ord` at once; `seed` makes the sink STags hard to guess. There is room for the RTR
  // read in any case: a Responder may choose it and allow no other.
  OutboundReads(uint16_t ord, uint32_t seed)
      : agreed_(ord), limit_(ord), counter_(seed), waiting_(std::max<uint16_t>(ord, 1)) {}

  uint16_t limit() const { return limit_; }
  // Bounds those that begin from now on, within what was agreed.
  void set_limit(uint16_t limit) { limit_ = std::min(limit, agreed_); }
  size_t outstanding() const { return waiting_.size(); }
  bool full() const { return waiting_.size() >= limit_; }

  OutboundRead& add_read(uint64_t request, Msn msn, uint32_t length) {
    return waiting_.push_back(
        {.request = request, .msn = msn, .sink = fresh_sink(), .length = length});
  }
  OutboundRead& add_atomic(uint64_t request, Msn msn) {
    return waiting_.push_back(
        {.request = request, .msn = msn, .atomic = true, .request_id = fresh_id()});
  }
  void trim() { waiting_.trim(); }
  // Responses come in the order of the requests (RFC 5040 section 5.5).
  OutboundRead* oldest() { return waiting_.empty() ? nullptr : &waiting_.front(); }
  void pop_oldest() { waiting_.pop_front(); }
  // For a Terminate that names a request by its MSN, or a read by its sink.
  const OutboundRead* find(Msn msn) {
    return find_if([msn](const OutboundRead& read) { return read.msn == msn; });
  }
  const OutboundRead* find(Stag sink) {
    return find_if([sink](const OutboundRead& read) { return !read.atomic && read.sink == sink; });
  }

 private:
  template <class Wanted>
  const OutboundRead* find_if(Wanted&& wanted) {
    for (size_t i = 0; i < waiting_.size(); ++i) {
      if (wanted(waiting_[i])) return &waiting_[i];
    }
    return nullptr;
  }
  // The upper half of the STags: registrations never get one of these, so a Write to a sink finds
  // nothing.
  Stag fresh_sink() { return Stag{0x80000000U | (counter_ += 0x9e3779b1U)}; }
  uint32_t fresh_id() { return counter_ += 0x9e3779b1U; }

  const uint16_t agreed_;
  uint16_t limit_;
  uint32_t counter_;
  FixedRing<OutboundRead> waiting_;
};

}  // namespace weft::rdmap
