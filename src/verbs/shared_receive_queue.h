// A receive queue that many queue pairs take from.
#pragma once

#include <mutex>
#include <unordered_set>
#include <vector>

#include "base/spinlock.h"
#include "verbs/context.h"
#include "verbs/protection_domain.h"
#include "verbs/receive_queue.h"

namespace weft::verbs {

class QueuePair;

class SharedReceiveQueue {
 public:
  // `owner`: the ABI's object, for events.
  SharedReceiveQueue(ProtectionDomain& pd, uint32_t capacity, uint32_t segments, void* owner);
  ~SharedReceiveQueue();

  ProtectionDomain& pd() const { return pd_; }
  uint32_t capacity() const { return queue_.capacity(); }
  uint32_t most_segments() const { return queue_.most_segments(); }
  uint32_t limit();

  // Any thread. Posts as many of `requests` as it can; `posted` says how many. Errors as
  // ReceiveQueue::post().
  Outcome<Ok> post(const ReceiveRequest* requests, size_t count, size_t& posted);
  // An event comes once when one is taken and fewer than `limit` receives are left, or when a queue
  // pair waits for one; 0 disarms. Errors: invalid (above capacity).
  Outcome<Ok> set_limit(uint32_t limit);

  // Engine holder. When there is none, `qp` is woken by the next post.
  bool take(work::Receive& out, QueuePair& qp);
  // It was not used: it is the next one. Who waits for one is woken.
  void give_back(work::TakenReceive receive);
  // The same question without taking one.
  bool empty_for(QueuePair& qp);
  void forget(QueuePair& qp);

  void add_ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() { refs_.fetch_sub(1, std::memory_order_relaxed); }
  bool in_use() const { return refs_.load(std::memory_order_relaxed) > 0; }

 private:
  bool take_and_check(work::Receive& out);
  // Fewer are left than the limit, which is disarmed then. Holder of lock_.
  bool limit_reached();
  void tell_limit() { pd_.context().events().push({EventType::srq_limit_reached, owner_}); }
  bool empty();
  void wake_waiting();
  void let_wait(QueuePair& qp);

  ProtectionDomain& pd_;
  void* const owner_;
  std::atomic<int> refs_{0};
  Spinlock lock_;
  ReceiveQueue queue_;
  work::TakenReceive returned_;  // before what is in the queue
  uint32_t limit_ = 0;
  std::mutex waiting_lock_;
  std::vector<QueuePair*> waiting_;         // in the order in which they came
  std::unordered_set<QueuePair*> in_line_;  // the same
};

}  // namespace weft::verbs
