// The way in for requests to send. Any thread; no allocation, no system call but the send.
#pragma once

#include "verbs/queue_pair.h"
#include "verbs/send_request.h"

namespace weft::verbs {

// A list of requests under one lock: add() until one fails, then commit() what was added (or drop
// it).
class SendPosting {
 public:
  explicit SendPosting(QueuePair& qp);
  ~SendPosting();  // drops what was not committed
  SendPosting(const SendPosting&) = delete;
  SendPosting& operator=(const SendPosting&) = delete;

  // Errors: invalid (state, too many segments, inline too long, message too long), no_memory
  // (queue full); fault() says more.
  Outcome<Ok> add(const SendRequest& request);
  Outcome<Ok> add_bind(const BindRequest& bind, uint64_t wr_id, bool signaled, bool fence);
  Outcome<Ok> add_local_invalidate(Stag stag, uint64_t wr_id, bool signaled, bool fence);
  void commit();
  // The first half of it, for callers with locks of their own: true when QueuePair::ring() is due
  // after they let go.
  bool publish();
  // Of the last request that was refused.
  const PostFault& fault() const { return fault_; }

 private:
  Failure<Errc> refuse(const PostFault& fault);
  PostFault fault_of(const SendRequest& r, uint64_t length) const;
  work::SendWqe* reserve();

  QueuePair& qp_;
  PostFault fault_;
  uint32_t added_ = 0;
  bool locked_ = true;
};

}  // namespace weft::verbs
