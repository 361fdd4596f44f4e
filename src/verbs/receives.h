// The receives of one queue pair: those of its own queue, or of a shared one.
#pragma once

#include <atomic>

#include "base/spinlock.h"
#include "verbs/receive_queue.h"
#include "verbs/shared_receive_queue.h"

namespace weft::verbs {

class Receives {
 public:
  // `owner`: whom the shared queue wakes. `shared` is nullptr where there is none.
  Receives(QueuePair& owner, SharedReceiveQueue* shared, const QpLimits& limits)
      : owner_(owner), shared_(shared), own_(limits.max_recv_wr, limits.max_recv_sge) {}

  SharedReceiveQueue* shared() const { return shared_; }

  // --- any thread
  // To the own queue. Errors: invalid (too many segments), no_memory (full).
  Outcome<Ok> post(const ReceiveRequest* requests, size_t count, size_t& posted);
  // Does a message wait for a receive? Then the thread that posted one rings.
  // Both sides read and write the flag in one step, so that either the waiting side sees the
  // receive, or the posting one sees that it waits.
  bool wanted() {
    bool none = false;
    return !wanted_.compare_exchange_strong(none, false);
  }

  // --- engine holder
  bool take(work::Receive& out);
  // It was not used: it is the next one of its queue.
  void give_back(work::TakenReceive receive);
  // Of the own queue alone, without waiting for one.
  bool take_own(work::Receive& out);
  // None is left; the next post will ring.
  bool out();
  // The next post rings in any case.
  void want() { wanted_.exchange(true); }
  // The bell rang.
  void heard() {
    if (wanted_.load(std::memory_order_relaxed)) wanted_.exchange(false);
  }
  // The queue pair goes away.
  void leave() {
    if (shared_ != nullptr) shared_->forget(owner_);
  }

 private:
  QueuePair& owner_;
  SharedReceiveQueue* const shared_;
  Spinlock lock_;                    // of those who post
  std::atomic<bool> wanted_{false};  // a message came and found no receive
  ReceiveQueue own_;
  work::TakenReceive returned_;  // to the own queue: before what is there
};

}  // namespace weft::verbs
